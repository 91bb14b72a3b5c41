"""The table."""

from typing import Final

from bots.bench import appends, archives, deliveries, from_discord, from_telegram, replays, starts
from bots.bench.goal import Goal, Row

ROWS: Final = (
    Row(
        "discord",
        "Discord: gateway socket → durable in the log, beside the same client with an empty handler",
        Goal(0.65, at_least=True),
        from_discord.measure,
    ),
    Row(
        "telegram",
        "Telegram: getUpdates → durable, beside the library's own parsing with an empty handler",
        Goal(0.8, at_least=True),
        from_telegram.measure,
    ),
    Row(
        "append",
        "durable append, 64 in flight, one session, beside a bare group commit of ready bytes",
        Goal(0.45, at_least=True),
        appends.one_session,
    ),
    Row(
        "append-many",
        "the same over 1,000 sessions, beside one session",
        Goal(0.55, at_least=True),
        appends.many_sessions,
    ),
    Row(
        "append-slow",
        "the same over 1,000 sessions where a sync takes 5 ms, beside a bare group commit there",
        Goal(0.7, at_least=True),
        appends.slow_disk,
    ),
    Row("append-alone", "one durable append, p50, beside one bare write and sync", Goal(3.0), appends.one_alone),
    Row(
        "replay",
        "typed replay of a long log, entries a second, beside orjson.loads per line",
        Goal(1.0, at_least=True),
        replays.typed_replay,
    ),
    Row("stats", "ishiki log stats, time, beside jq doing the same count", Goal(0.2), replays.log_stats),
    Row("last", "last 100 entries of a log of 1 GiB, p99", Goal(2.0, "ms"), replays.last_entries),
    Row("start", "start until ready, beside the bare imports of discord and telegram", Goal(1.5), starts.bare_start),
    Row(
        "start-full",
        "start until ready with 10,000 sessions and 1,000,000 entries: more than with none",
        Goal(0.3, "s"),
        starts.full_start,
    ),
    Row(
        "memory",
        "memory of 10,000 known idle sessions: more than with none",
        Goal(8.0, "MiB"),
        starts.idle_memory,
    ),
    Row(
        "deliver",
        "message → /deliver received at 500 messages/s over 50 sessions, p99",
        Goal(50.0, "ms"),
        deliveries.delay,
    ),
    Row(
        "overload",
        "ten times what the runtime takes, 60 s: memory grows after the first quarter, nothing lost",
        Goal(8.0, "MiB"),
        deliveries.overload,
    ),
    Row(
        "archive",
        "durable appends with the archive, beside the same without it",
        Goal(0.85, at_least=True),
        archives.intake,
    ),
    Row("burst", "from the end of a burst of 100,000 until all of it can be found", Goal(10.0, "s"), archives.burst),
    Row(
        "search",
        "newest 50 of 1,000,000 messages: one to three Chinese characters, or one word, p99",
        Goal(5.0, "ms"),
        archives.searches,
    ),
)
