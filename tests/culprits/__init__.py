"""What makes wake-ups late on purpose: a kernel module, a program, their build."""
