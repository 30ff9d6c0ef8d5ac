"""The layers by family, under the file names that model code imports them from."""
