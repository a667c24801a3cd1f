"""Real jobs on a CPU that track themselves: PPO, GRPO, and an explorer with a trainer."""
