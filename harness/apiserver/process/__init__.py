"""The shells: a member's and the store's process, their sockets, asyncio's clock, and what they are told at start.

The only package of the apiserver that knows asyncio; everything else is run by a clock and takes exchanges."""
