"""What runs before anything else of the package.

`places` knows the installed folders, `bootstrap` checks the installation and adds the import finders, and `absent_names` gives
the reason for each name of torch that this project does not have.
"""
