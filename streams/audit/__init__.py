"""What was decided, from the topics alone: read, proved, replayed, explained, and tried again under another policy.

Nothing here asks a scheduler, and nothing writes to its topics but a checkpoint. A `Recording` is what is read, whether
it lies in Kafka, in an exported directory or in memory; everything else is a function of it.
"""
