"""What rtscope needs of the computer it runs on: errors, units, files, processes."""
