"""The experiments behind the command line, one module each."""
