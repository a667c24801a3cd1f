"""Tables and rules read from one version of Megatron-LM and slime.

The fallback where their own parser is not at hand.
"""

READ_FROM = "slime 624b824 (2026-08-21) with Megatron-LM 1dcf0daf (2026-02-14)"
"""What the tables and rules of this room were read from."""
