"""Answers about whole datasets: each is worked out shard by shard, wherever an executor has it done."""
