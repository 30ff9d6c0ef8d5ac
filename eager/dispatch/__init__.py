"""The one place that every op call passes: `calls` runs an op under the modes that are on."""
