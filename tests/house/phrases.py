"""Turns of phrase that this project does not use, and what to write instead.

Each entry is (name, pattern, replacement). A pattern is searched in every docstring, comment, message and test name
(`sentences.texts`), except texts that are repeated word for word (`VERBATIM`).
To add an entry: append it here, run `python -m tests.house.sentences`, and rewrite the sentences that it prints.
"""

from __future__ import annotations

import re
from typing import Final

_PREPOSITION = "(?:of|for|to|by|with|from|than|in|on|at|as|over|into|after|before|about|between|like|but|and)"
_COMPARED = "longer|more|less|other|different|better|worse|such|faster|slower|smaller|larger|matter|need|way"

_ROWS: Final = [
    # Pronouns in the place of a noun
    ("What ...", r"(?:^|[.;:] )What (?!to\b|if\b)(?![^.]*\?)", "begin with the noun: 'The dtype of ...', 'Code that ...', 'Lists the ...'"),
    ("test: what ...", r"^what\b(?![^.]*\?)", "begin with the subject of the property"),
    ("preposition + what", rf"\b{_PREPOSITION} what\b", "name the thing"),
    ("what is", r"\bwhat (?:is|are|was|were|has|have)\b", "name the thing: 'values that are', 'code that has'"),
    ("what it", r"\bwhat (?:it|they|that|those|this)\b", "name the thing: 'the shape it returns'"),
    ("is what", r"\b(?:is|are|was|were|be) what\b", "say what equals what with nouns"),
    ("what keeps/comes", r"\bwhat (?:keeps?|came|comes?|ends?|made|makes?)\b", "name the thing"),
    ("the one that", r"\bones? (?:that|which|whose|without|made)\b", "repeat the noun"),
    ("another one", r"\b(?:this|another|new|old|other|same|such an?) ones?\b(?! (?:dim|element|call|op|line))", "repeat the noun"),
    ("that of", r"\bthat of\b", "repeat the noun"),
    ("those of", r"\bthose (?:of|that|which)\b", "repeat the noun"),
    ("nobody", r"\b(?:no|any|some)body\b|\bno one\b|\bsomeone\b", "name the caller, the user, or the code; 'no caller reads it'"),
    ("whoever", r"\bwhoever\b", "'code that', 'a caller that'"),
    ("who", r"(?<!user )(?<!users )(?<!`)\bwho\b", "'code that', 'the pass that'; 'who' is for people"),
    ("whatever", r"\bwhatever\b", "'any', 'regardless of'"),
    # Verbs of people for things
    ("ask", r"\bask(?:s|ed|ing)?\b", "query, call, check, request, require"),
    ("tell", r"\b(?:tell|tells|told|telling)\b", "report, state, determine, show, distinguish"),
    ("stand", r"\b(?:stand|stands|stood|standing)\b(?! for|-in)", "is, is written, is stored, precedes, remains"),
    ("want", r"(?<!you )(?<!user )(?<!users )(?<![.`])\bwant(?:s|ed)\b", "needs, requires, requests"),
    ("is looked at", r"\b(?:is|are|was|were|be) looked\b(?! up)", "is read, is checked, is inspected"),
    ("go on", r"\b(?:goes|going|went|gone) on\b", "continues"),
    ("gone", r"(?<!`)\bgone\b(?! on)", "deleted, freed, finished"),
    ("comes to be", r"\bcomes? to be\b", "is created"),
    ("keeps of", r"\bkeeps? of\b", "keeps (of)"),
    ("met", r"\b(?:is|are|was|be) met\b(?! by)", "is encountered, is reached"),
    # Negation by 'no', 'none', 'not' out of place
    ("is no view", rf"(?<![Tt]here )\b(?:is|are|was|were|be) no (?!{_COMPARED})\w+", "'is not a view', 'cannot be'"),
    ("nor", r"(?:^|[.;:])(?:(?!neither)[^.;:])*\bnor\b", "two sentences, or 'and not'"),
    ("has none", r"\b(?:has|have|had) none\b|\bthere (?:is|are|was|were) none\b", "'has no X', 'if there is no X'"),
    ("nothing of", r"\bnothing of\b", "'does not depend on', 'is independent of'"),
    ("has not", r"\b(?:has|have) not\b(?! been| yet| \w+(?:ed|en|t|n)\b)", "lacks, does not have"),
    ("but for", r"\bbut for\b(?! (?:all|any|each|every))|\bsave for\b", "except for"),
    ("do without", r"\b(?:do|does|did|done) without\b", "does not need"),
    # Archaic or roundabout
    ("aloud", r"\baloud\b", "visible, observable; 'raises'"),
    ("of its own", r"\bof (?:its|their|one's|his) own\b|\bon (?:its|their) own(?=[.,;:)]|$)", "separate, own (before the noun), alone"),
    ("by itself", r"\bby (?:itself|themselves)\b|\bfor itself\b", "alone, separately, without"),
    ("as it is", r"\bas (?:it|they) (?:is|are|was|were)\b(?! not| \w+(?:ed|en|lt|de)\b)", "unchanged, as written, current"),
    ("so is", r"\bso (?:is|are|does|do|has|have) (?:the|a|an|it|they|every|each)\b", "'X is too', 'X also is'"),
    ("is so", r"\b(?:is|be|are|was) so\b(?! (?:that|far|many|much|few)|(?: \w+){1,2} that)", "holds, is true"),
    ("is to", r"\b(?:is|are) to (?:be|have|do)\b", "must, will"),
    ("whether ... or not", r"\b[Ww]hether\b[^.;]*\bor not\b|\bor not as\b", "'whether ... depends on ...'"),
    ("in its stead", r"\bin (?:its|their) (?:stead|place)\b", "instead of X"),
    ("has it", r"\bas (?:torch|numpy|Python|CPython) (?:has|have) it\b|\bhave it so\b", "'as in torch'"),
    ("take for", r"\btaken for\b|\btakes? (?:it|them|an? \w+|\w+) for an?\b", "'is treated as', 'mistakes for'"),
    ("where there is", r"\bwhere there (?:is|are|was|were)\b", "'if there is'"),
    ("at all", r"\bat all\b", "delete it"),
    ("anew", r"\banew\b", "again"),
    ("of old", r"\bof old\b|\bhitherto\b|\bhenceforth\b|\bfrom here on\b", "before; from now on"),
]  # fmt: skip

PHRASES: Final = [(name, re.compile(pattern), instead) for name, pattern, instead in _ROWS]

# Parts of texts that are repeated word for word: messages of torch, and a sentence with a stored embedding.
VERBATIM: Final = (
    "forward AD level that was not the last one that was created",
    "a different size than that of the original Tensor",
    "to be same as that of the input tensor",
    "smaller than what this DataLoader is going to create",
    "A generator function yields its values one at a time",
)
