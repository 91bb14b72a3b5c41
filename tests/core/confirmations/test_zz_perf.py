import time, pytest
from core.ids import discord_session
from tests.builders import *
from tests.core.confirmations.bench import Bench
from tests.conftest import *
@pytest.mark.parametrize("n",[500,1000,2000,4000])
@pytest.mark.parametrize("chats",[1,100])
async def test_p(house, until, n, chats):
    bench=Bench(house); await bench.start()
    t=time.monotonic(); c=time.process_time()
    for i in range(n): await bench.open(a_confirmation(a_task(i), session_id=discord_session(str(1000+i%chats)), at=i))
    await until(lambda: sum(len(x.asked) for x in bench.chats.values())==chats)
    a=time.monotonic()-t; ac=time.process_time()-c
    await bench.stop(); t=time.monotonic(); c=time.process_time()
    await bench.start(); await until(lambda: all(len(x.prompts[x.asked[0].message])>1 for x in bench.chats.values()))
    print(f"PERF n={n} chats={chats} open {a:.2f}s cpu {ac:.2f} restart {time.monotonic()-t:.2f}s cpu {time.process_time()-c:.2f}")
    await bench.stop()
