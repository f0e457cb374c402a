"""Is the theory right, and how accurate is the code everywhere."""
