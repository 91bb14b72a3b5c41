"""What a message shows besides its text: polls, embeds and components, in words."""

from collections.abc import Callable, Iterator, Sequence

import discord

from core.content import Element, Node, in_lines

Read = Callable[[str], list[Node]]
"""Reads a text in Discord's Markdown."""


def poll_in_words(poll: discord.Poll) -> list[Node]:
    """The question, and the answers a line each; the votes are not in it, as they are no edits."""
    manner = " (several answers)" if poll.multiple else ""
    nodes: list[Node] = [f"Poll{manner}: {poll.question}"]
    for answer in poll.answers:
        nodes.append("\n- ")
        nodes.extend(_emoji(answer.media.emoji))
        nodes.append(answer.media.text or "")
    return nodes


def embed_in_words(embed: discord.Embed, read: Read) -> list[Node]:
    """Author, title, description, fields and footer of an embed, a line each; empty if it has none of them."""
    title: list[Node] = [Element("b", {}, (embed.title,))] if embed.title else []
    if title and embed.url and embed.url.startswith(("http://", "https://")):
        title = [Element("a", {"href": embed.url}, tuple(title))]
    pieces = [[embed.author.name or ""], title, read(embed.description or "")]
    pieces += [[Element("b", {}, (field.name or "",)), ": ", *read(field.value or "")] for field in embed.fields]
    pieces.append([embed.footer.text or ""])
    words = in_lines(pieces)
    return words or (["[picture]"] if embed.image or embed.thumbnail or embed.video else [])


def components_in_words(components: Sequence[object], read: Read) -> list[Node]:
    """The texts, and what can be pressed or chosen in brackets, a line each."""
    return in_lines(_pieces(components, read))


def _pieces(components: Sequence[object], read: Read) -> Iterator[Sequence[Node]]:
    for component in components:
        match component:
            case discord.TextDisplay():
                yield read(component.content)
            case discord.ActionRow() | discord.Container():
                yield from _pieces(component.children, read)
            case discord.SectionComponent():
                yield from _pieces([*component.children, component.accessory], read)
            case discord.Button():
                yield [f"[button: {component.label or component.emoji or component.url or ''}]"]
            case discord.SelectMenu():
                yield [f"[choice: {component.placeholder or ', '.join(option.label for option in component.options)}]"]
            case discord.MediaGalleryComponent():
                yield [
                    f"[picture: {item.description}]" if item.description else "[picture]" for item in component.items
                ]
            case discord.ThumbnailComponent():
                yield [f"[picture: {component.description}]" if component.description else "[picture]"]
            case discord.FileComponent():
                yield [f"[file: {component.name}]" if component.name else "[file]"]
            case _:
                pass


def _emoji(emoji: discord.PartialEmoji | discord.Emoji | None) -> Iterator[Node]:
    if emoji is None:
        return
    yield Element("emoji", {"id": str(emoji.id), "name": emoji.name}) if emoji.id else emoji.name
    yield " "
