"""Letting chats in that no rule names: a code is said in the chat, and the operator admits it (contract section 4)."""
