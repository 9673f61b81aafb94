"""What a load run refuses before it starts."""

from pathlib import Path

from tests.load.run import no_question


def test_questions_of_a_file_need_no_answers_but_one_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "who?"}')
    assert not no_question(str(file))
    file.write_text('{"evidence": []}')
    assert "no line of it" in no_question(str(file))
    assert "no such file" in no_question(str(tmp_path / "none"))
