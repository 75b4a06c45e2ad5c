"""Systems drawn to break the library, each run against an oracle that knows its own error."""
