"""Tables and rules read from one version of Megatron-LM and slime.

The fallback where their own parser is not at hand.
"""
