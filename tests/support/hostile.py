"""Names that other people could give to files, classes and models to steer a terminal, a page or a spreadsheet."""

import re

STEERING = "\x1b[31m\x1b]8;;x\x07\x9b2J\x90q\x85\x7f"
"""CSI, OSC 8, C1 forms of CSI, DCS and NEL, DEL."""

TURNING = "\u202e\u2066\u200f\u061c"
UNSEEN = "\u200b\ufeff\u2028\u2029\u2060"
BREAKING = "\n\r\t"
MARKUP = "[bold]:smile:[link]"

PLANTED = f"be{STEERING}{TURNING}{UNSEEN}{BREAKING}{MARKUP}"
SHOWN = (
    r"be\x1b[31m\x1b]8;;x\x07\x9b2J\x90q\x85\x7f\u202e\u2066\u200f\u061c\u200b\ufeff\u2028\u2029\u2060\n\r\t"
    "[bold]:smile:[link]"
)

RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""What no terminal and no page may get; of the line breaks only the plain one is ours."""

TAGS = "<img src=x onerror=alert(1)>\"'></script><!--{{ 7 * 7 }}&amp;"
