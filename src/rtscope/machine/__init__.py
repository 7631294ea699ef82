"""What is read of a machine: its files, its kernel, and the facts they tell."""
