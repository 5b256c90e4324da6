"""Research object: results, with their notebooks, data and verdicts, as an RO-Crate."""

from repro.batch.crate.write import Summary, write_crate

__all__ = ["Summary", "write_crate"]
