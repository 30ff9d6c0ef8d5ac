"""Which definitions share a kernel (`schedule`) and where buffers live (`memory`)."""
