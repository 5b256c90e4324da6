"""Text tables, strict YAML and JSON, public files, and one writer for all of them."""
