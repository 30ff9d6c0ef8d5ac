"""The first code of the package to run: checks of the installation and the import finders.

`places` has the installed folders. `bootstrap` checks the installation and adds the import finders. `torch_names` maps torch's
module names to modules of this project, and `first_use` has the names whose module is imported on first use. `absent_names` gives
the reason for each name of torch that this project does not have; `hollow_modules` makes the modules that only refuse.
"""
