"""Refusals as Discord words them (API reference, JSON Error Codes and Error Messages)."""

from bots.sandbox.discord.model import JsonObject


class Refusal(Exception):
    """An error answer: HTTP status, JSON error code, text, and for 50035 the tree of field errors."""

    def __init__(self, status: int, code: int, message: str, errors: JsonObject | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: JsonObject = {"message": message, "code": code}
        if errors is not None:
            self.body["errors"] = errors


def unauthorized() -> Refusal:
    return Refusal(401, 0, "401: Unauthorized")


def not_found() -> Refusal:
    return Refusal(404, 0, "404: Not Found")


def unknown(what: str) -> Refusal:
    """What the client named does not exist."""
    codes = {
        "Channel": 10003,
        "Guild": 10004,
        "Member": 10007,
        "Message": 10008,
        "User": 10013,
        "Webhook": 10015,
        "interaction": 10062,
    }
    return Refusal(404, codes[what], f"Unknown {what}")


def missing_access() -> Refusal:
    return Refusal(403, 50001, "Missing Access")


def missing_permissions() -> Refusal:
    return Refusal(403, 50013, "Missing Permissions")


def cannot_message_user() -> Refusal:
    return Refusal(403, 50007, "Cannot send messages to this user")


def not_the_author() -> Refusal:
    return Refusal(403, 50005, "Cannot edit a message authored by another user")


def not_in_direct_messages() -> Refusal:
    return Refusal(403, 50003, "Cannot execute action on a DM channel")


def bulk_delete_count() -> Refusal:
    text = "Provided too few or too many messages to delete."
    return Refusal(400, 50016, f"{text} Must provide at least 2 and fewer than 100 messages to delete.")


def bulk_delete_age() -> Refusal:
    return Refusal(400, 50034, "You can only bulk delete messages that are under 14 days old.")


def empty_message() -> Refusal:
    return Refusal(400, 50006, "Cannot send an empty message")


def invalid_json() -> Refusal:
    return Refusal(400, 50109, "The request body contains invalid JSON.")


def already_acknowledged() -> Refusal:
    return Refusal(400, 40060, "Interaction has already been acknowledged.")


def invalid_webhook_token() -> Refusal:
    return Refusal(401, 50027, "Invalid Webhook Token")


def invalid_form(path: str, code: str, message: str) -> Refusal:
    """50035 for one field; `path` is dotted, with numbers for places in a list (`components.0.components.1.label`)."""
    tree: JsonObject = {"_errors": [{"code": code, "message": message}]}
    for part in reversed(path.split(".")):
        tree = {part: tree}
    return Refusal(400, 50035, "Invalid Form Body", tree)


def too_long(path: str, limit: int) -> Refusal:
    return invalid_form(path, "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length.")


def bad_length(path: str, least: int, most: int) -> Refusal:
    return invalid_form(path, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")


def required(path: str) -> Refusal:
    return invalid_form(path, "BASE_TYPE_REQUIRED", "This field is required")
