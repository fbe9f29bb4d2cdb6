"""Short texts on which two implementations of one tokenizer are likely to differ."""

from collections.abc import Sequence

_ADDED_AT_MOST = 256

_TEXTS = (
    "",
    " ",
    "  \t \n\n \r\n \r x",
    "Hello world, it's I'LL we'd they'RE 'S 'ſ don't can’t.",
    "    if x:\n\t\treturn\t[1, 22, 333, 4444444]   \n   \n",
    "1234567 3.14e-10 ١٢٣ ½ Ⅷ ²",
    "na\u00efve caf\u00e9 cafe\u0301 Stra\u00dfe \u017f \u0149 \ufb01 \uff21 x\u0345 \u03ac\u0345",
    "你好，世界 こんにちは 안녕 สวัสดี नमस्ते مرحبا שלום",
    "🙂👩‍👩‍👧 🇩🇪 \U0010ffff \ue000 \ufffd \u200b\u2028\u3000\u00a0x \u00ad",
    "\x00\x01\x7f\x85 \x1c\x1d y",
    "https://example.org/a?b=c#d <b>x</b> {'k': \"v\"} a_b-c C++ \\n \\u00e9",
    "aaaaaaaaaaaaaaaa" * 64,
    "word" * 300 + " " * 300 + "=" * 300,
    "!!!???...,,,;;;---___***///\\\\\\|||",
    "HTTPServer XMLHttpRequest camelCase snake_case ALLCAPS MiXeD",
)


def probes(added_tokens: Sequence[str]) -> list[str]:
    """Texts to compare on: odd ones, and the added tokens alone, inside words and between blanks.

    Args:
        added_tokens: at most the first few hundred are used.
    """
    texts = list(_TEXTS)
    for token in added_tokens[:_ADDED_AT_MOST]:
        texts += [token, f"x{token}y  {token} z\n{token}\n", f"{token}{token} {token[:-1]}"]
    return texts
