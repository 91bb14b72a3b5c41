"""The seam to the agent."""
