"""``ishiki doctor``: looks at everything the house stands on, changes nothing, and says what is wrong with the cure.

A check is a small function that gives one `Verdict`. Checks run side by side, each with a limit of its own, and are
told in a fixed order. What several of them go by (who are we on this platform?) is asked once.

Nothing is sent, set, taken or confirmed on a platform; no lock is kept. What is printed holds no token, no address with
one, and no text of a chat: chats are named by their session ids.
"""
