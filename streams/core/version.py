"""The version of the core: of what it decides, and of what is written down about its state.

The same version gives the same decisions and the same hashes for the same inputs, whatever else has changed. It is in
every journal record, so that who replays one knows whether a difference is to be expected.
"""

from typing import Final

# To be raised whenever the same inputs lead to another decision or another row, or a row takes another form
# (`streams.rows.forms`): see `tests/golden/test_version.py`.
VERSION: Final = 1
