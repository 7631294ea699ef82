"""Small changes of the code that the fast tests have to notice: `make mutants`."""
