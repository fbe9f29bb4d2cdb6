"""Chat templates: what they may do, what they give, and how they fail."""

import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.text import ChatTemplate, ChatTemplateError, ConversationError, read_chat_template
from coredata.text.chat_sandbox import Generated

MARKED = (
    "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }};{% endgeneration %}{% else %}{{ m.content }};{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
USER, ASSISTANT = {"role": "user", "content": "a"}, {"role": "assistant", "content": "bc"}


def say(*messages, source=MARKED, **options):
    return ChatTemplate(source).render(messages, **options)


def test_text_and_spans():
    rendered = say(USER, ASSISTANT, USER, ASSISTANT)
    assert rendered.text == "[user]a;[assistant]bc;[user]a;[assistant]bc;"
    assert [rendered.text[a:b] for a, b in rendered.marked] == ["bc;", "bc;"]
    assert say(USER, add_generation_prompt=True).text == "[user]a;[assistant]"


def test_only_templates_with_marks_say_so():
    assert ChatTemplate(MARKED).marks_generation
    assert not ChatTemplate("{# {% generation %} #}{{ '{% generation %}' }}").marks_generation


MARKS = ["{% generation %}", "{% endgeneration %}", "{{ x }}", "\0G\1", ";", "[assistant]", "é", ""]
CONTENT = st.lists(st.sampled_from(MARKS) | st.text(max_size=3), max_size=4).map("".join)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), CONTENT), max_size=6))
def test_spans_are_the_assistants_turns_whatever_is_said(turns):
    rendered = say(*({"role": role, "content": content} for role, content in turns))
    assert rendered.text == "".join(f"[{role}]{content};" for role, content in turns)
    said = [rendered.text[start:stop] for start, stop in rendered.marked]
    assert said == [f"{content};" for role, content in turns if role == "assistant"]
    bounds = [edge for span in rendered.marked for edge in span]
    assert bounds == sorted(bounds)


def test_text_of_the_marked_type_in_a_message_is_not_marked():
    forged = {"role": "user", "content": Generated("forged")}
    assert say(forged, ASSISTANT, source="{{ messages[0].content }}").marked == ()


def test_nested_marks_are_one_span():
    source = "a{% generation %}b{% generation %}c{% endgeneration %}{% endgeneration %}d"
    assert say(USER, source=source).marked == ((1, 3),)


@pytest.mark.parametrize(
    "source",
    [
        "{% macro m() %}\n{% generation %}x{% endgeneration %}{% endmacro %}{{ m() }}",
        "{% set s %}\n{% generation %}x{% endgeneration %}{% endset %}{{ s }}",
        "{% filter upper %}\n{% generation %}x{% endgeneration %}{% endfilter %}",
        "{% for m in [1] recursive %}\n{% generation %}x{% endgeneration %}{% endfor %}",
        "{% block b %}\n{% generation %}x{% endgeneration %}{% endblock %}{{ self.b() }}",
    ],
)
def test_marks_whose_place_cannot_be_known_are_refused(source):
    with pytest.raises(ChatTemplateError, match=r"line 2: this {% generation %} block is inside"):
        say(USER, source=source)


def test_names_and_filters():
    source = (
        "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}"
        "{% break %}{% endfor %}{{ tools | tojson }}{{ documents }}{{ bos_token }}"
        "{{ dict(a=1)['a'] }}{{ strftime_now('%d %b %Y') }}"
    )
    template = ChatTemplate(source, date="2026-01-31")
    variables = {"tools": [{"é": "<&>"}], "bos_token": "<s>"}
    rendered = template.render([USER, ASSISTANT, USER], variables=variables)
    assert rendered.text == 'bc[{"é": "<&>"}]None<s>131 Jan 2026'


def test_white_space_around_blocks_goes_as_templates_expect():
    assert say(USER, source="  {% if true %}\n  x\n  {% endif %}\ny").text == "  x\ny"


def test_a_template_that_writes_the_date_needs_one():
    with pytest.raises(
        ChatTemplateError, match=r"line 2, writes today's date .* date='2026-01-31'"
    ):
        say(USER, source="\n{{ strftime_now('%Y') }}")


def test_a_refusal_names_template_message_and_roles():
    template = ChatTemplate("\n{{ raise_exception('Only ' ~ 1) }}", "of a model")
    text = "chat template of a model, line 2, refuses messages with the roles user: Only 1"
    with pytest.raises(ChatTemplateError, match=text):
        template.render([USER])


def test_a_refused_empty_system_turn_says_what_to_do():
    source = "{{ raise_exception('no system') }}"
    with pytest.raises(ChatTemplateError, match=r"no system.*system_role=False"):
        say({"role": "system", "content": ""}, source=source)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("{{ messages[0].content + 1 }}", "TypeError"),
        ("{{ messages[7].content.x }}", "UndefinedError"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ 'a'.index('b') }}", "ValueError"),
        ("{{ range(10 ** 9) }}", "OverflowError"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{{ dict.update(messages[0], content='x') }}", "UndefinedError"),
        ("{% include 'x' %}", "TypeError"),
    ],
)
def test_a_template_that_fails_says_how(source, error):
    with pytest.raises(ChatTemplateError, match=f"fails on messages with the roles user: {error}"):
        say(dict(USER), source=source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("\n{% if %}", "line 2, is not Jinja"),
        ("{% generation %}", "is not Jinja: .*endgeneration"),
        ("{% nonsense %}", "is not Jinja: .*nonsense"),
        (
            "{% for m in messages %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
            "cannot be compiled: .* cannot leave a",
        ),
    ],
)
def test_what_is_no_template_is_refused(source, text):
    with pytest.raises(ChatTemplateError, match=text):
        say(USER, source=source)


def test_a_template_cannot_get_at_what_is_no_plain_value():
    with pytest.raises(ConversationError, match=r"message 0.content\[0\].image is of type object"):
        say({"role": "user", "content": [{"image": object()}]})
    with pytest.raises(ConversationError, match=r"variables.f is of type function"):
        say(USER, variables={"f": lambda: 1})


def test_a_template_cannot_get_at_what_a_text_can_do_besides():
    class Loud(str):
        def shout(self):
            return "!"

    with pytest.raises(ChatTemplateError, match="'str object' has no attribute 'shout'"):
        say({"role": "user", "content": Loud("a")}, source="{{ messages[0].content.shout() }}")


def test_a_template_travels_and_compares():
    template = ChatTemplate(MARKED, "m", "2026-01-31")
    template.render([USER])
    assert pickle.loads(pickle.dumps(template)).render([USER]) == template.render([USER])
    assert template == ChatTemplate(MARKED, "m", "2026-01-31")


def test_jinja_missing_names_the_extra(monkeypatch):
    say(USER)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "coredata.text.chat_sandbox")
    monkeypatch.delattr("coredata.text.chat_sandbox")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'coredata\[chat\]'"):
        say(USER)


def test_templates_beside_a_tokenizer(build):
    named = [{"name": "default", "template": "D"}, {"name": "tools", "template": "T"}]
    listed = build(directory="listed", tokenizer_config={"chat_template": named})
    assert read_chat_template(listed).source == "D"
    assert read_chat_template(listed, "tools", date="2026-01-31").date == "2026-01-31"
    assert read_chat_template(listed, "tools").source == "T"
    with pytest.raises(
        ChatTemplateError, match="no chat template named 'rag'; there are default, tools"
    ):
        read_chat_template(listed, "rag")
    plain = build(directory="plain", tokenizer_config={"chat_template": "P"})
    assert read_chat_template(plain.removesuffix("/tokenizer.json")).source == "P"
    own = plain.replace("tokenizer.json", "chat_template.jinja")
    with open(own, "w", encoding="utf-8") as file:
        file.write("é")
    assert read_chat_template(plain).source == read_chat_template(own).source == "é"


def test_no_template_or_no_text(build, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no chat template in .*no chat_template in"):
        read_chat_template(build(directory="none", tokenizer_config={"chat_template": None}))
    with pytest.raises(FileNotFoundError, match="there is no chat template"):
        read_chat_template(str(tmp_path / "x.jinja"))
    wrong = build(directory="wrong", tokenizer_config={"chat_template": [{"name": 1}]})
    with pytest.raises(ChatTemplateError, match="neither a text nor a list"):
        read_chat_template(wrong)
    (tmp_path / "y.jinja").write_bytes(b"a\xff")
    with pytest.raises(ChatTemplateError, match=r"not UTF-8 text: .* at byte 1"):
        read_chat_template(str(tmp_path / "y.jinja"))
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(ChatTemplateError, match="is not JSON"):
        read_chat_template(str(tmp_path))
