"""Export: a deployment's topics in a directory of compressed files with a manifest, for an auditor without Kafka.

`Window` decides which records belong together, `export` writes them, and an `ExportedRecording` reads the directory,
each file against the manifest. That nobody has altered both, replay and verify show: the journal is a chain.
"""

from streams.audit.export.reading import ExportedRecording
from streams.audit.export.window import Window
from streams.audit.export.writing import TOPICS, export

__all__ = ["TOPICS", "ExportedRecording", "Window", "export"]
