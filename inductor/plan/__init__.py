"""Plans: `schedule` decides which definitions share a kernel, `memory` places buffers in one arena."""
