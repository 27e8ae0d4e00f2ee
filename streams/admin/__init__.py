"""Administration of a deployment: its topics and its policy.

What plans is pure; what applies is thin and idempotent. Only `streams.admin.kafka` talks to the admin client.
"""
