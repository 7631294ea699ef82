"""What the threads of a running program do that costs them their real time."""
