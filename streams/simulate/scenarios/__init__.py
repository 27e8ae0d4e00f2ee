"""Scenarios as data: each is made from a seed, and has one sentence that says what it shows.

What may not happen here: a draw that is not seeded, or a result: what comes out is `streams.simulate.comparison`'s.

Rooms: `catalogue` lists them all; `competition` is the table of those in one small pool; `meridian` is the demo's
story; `recorded` makes stories of traces; `rules` is the policy that all of them have.
"""
