"""The doors: chat platforms, the web, the terminal, and the program that ties them to the core."""
