"""Values of the captured program, by kind of Python value."""
