"""Forms as Google takes them: the requests of its Forms API as JSON, and an Apps Script that needs no key.

Nothing is sent from here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from vpref.forms.questions import DIFFICULTY_ENDS, Asked, Sheet

_WIDTH = 740  # pixels, the most that a form takes

DESCRIPTION = (
    "Each page shows an image, a scene, and a preference that somebody states. Choose the action that suits this "
    "preference best, whatever you would like yourself; say how difficult it was to choose, and in a few words why."
)


def api_requests(sheet: Sheet, image_url: Callable[[str], str]) -> dict[str, Any]:
    """The bodies of `forms.create`, then `forms.batchUpdate`, then `forms.setPublishSettings`, for one form.

    `image_url` gives the address of an image by its digest; Google fetches it once. A form takes only its title on
    creation, and since July 2026 starts unpublished.
    """
    about = {"updateFormInfo": {"info": {"description": DESCRIPTION}, "updateMask": "description"}}
    items = [_request(place, item) for place, item in enumerate(_items(sheet, image_url))]
    return {
        "create": {"info": {"title": sheet.title, "documentTitle": f"{sheet.title} {sheet.version}"}},
        "batchUpdate": {"requests": [about, *items]},
        "setPublishSettings": {
            "publishSettings": {"publishState": {"isPublished": True, "isAcceptingResponses": True}},
            "updateMask": "publish_state",
        },
    }


def _request(place: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"createItem": {"location": {"index": place}, "item": item}}


def _items(sheet: Sheet, image_url: Callable[[str], str]) -> Iterator[dict[str, Any]]:
    yield _question(sheet.person, {"textQuestion": {"paragraph": False}})
    for number, asked in enumerate(sheet.asked, 1):
        yield {"title": f"Question {number} of {len(sheet.asked)}", "pageBreakItem": {}}
        titles = asked.titles
        if asked.shown is not None:
            yield _image(asked, image_url(asked.shown))
        options = [{"value": text} for text in asked.options.values()]
        yield _question(titles["choice"], {"choiceQuestion": {"type": "RADIO", "shuffle": False, "options": options}})
        if "difficulty" in titles:
            low, high = DIFFICULTY_ENDS
            scale = {"low": 1, "high": 5, "lowLabel": low, "highLabel": high}
            yield _question(titles["difficulty"], {"scaleQuestion": scale})
            yield _question(titles["why"], {"textQuestion": {"paragraph": True}})


def _question(title: str, kind: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "questionItem": {"question": {"required": True, **kind}}}


def _image(asked: Asked, url: str) -> dict[str, Any]:
    image = {"sourceUri": url, "altText": "The scene", "properties": {"alignment": "CENTER", "width": _WIDTH}}
    return {"title": f"[{asked.code}] Image", "description": "\n\n".join(asked.text), "imageItem": {"image": image}}


def apps_script(sheets: Iterable[Sheet], image_name: Callable[[str], str]) -> str:
    """A script that makes all the forms in the account that runs it, from images in a folder of its Drive. One
    function a form, since a run may take six minutes at most. `image_name` names the file of a digest."""
    parts = [_SCRIPT]
    for sheet in sheets:
        pages = [_page(asked, image_name) for asked in sheet.asked]
        form = {"title": sheet.title, "description": DESCRIPTION, "person": sheet.person, "pages": pages}
        name = sheet.form.name.replace("-", "_")
        parts.append(f"function make_{name}() {{\n  makeForm({_literal(form)});\n}}\n")
    return "\n".join(parts)


def _page(asked: Asked, image_name: Callable[[str], str]) -> dict[str, Any]:
    titles = asked.titles
    return {
        "image": None if asked.shown is None else image_name(asked.shown),
        "imageTitle": f"[{asked.code}] Image",
        "text": "\n\n".join(asked.text),
        "choice": titles["choice"],
        "options": list(asked.options.values()),
        "difficulty": titles.get("difficulty"),
        "why": titles.get("why"),
    }


def _literal(value: object) -> str:
    """JSON as a literal of JavaScript, also of the older kind that takes these two for line ends."""
    text = json.dumps(value, ensure_ascii=False, indent=2).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return text.replace("\n", "\n  ")


_SCRIPT = f"""\
// Makes the survey's forms in your Google account. No key is needed:
// 1. Put the images (the folder images/ beside this file) into a folder of your Drive.
// 2. At script.google.com make a new project, paste this file, and put the folder's id below
//    (the end of its address: https://drive.google.com/drive/folders/ID).
// 3. Run one function after the other: make_plain_1, make_plain_2, ...; each logs its form's addresses.
const IMAGES_FOLDER_ID = 'PUT THE ID HERE';

function makeForm(plan) {{
  const form = FormApp.create(plan.title).setDescription(plan.description);
  form.setCollectEmail(false).setProgressBar(true).setAllowResponseEdits(false);
  form.addTextItem().setTitle(plan.person).setRequired(true);
  const folder = DriveApp.getFolderById(IMAGES_FOLDER_ID);
  plan.pages.forEach((page, number) => {{
    form.addPageBreakItem().setTitle(`Question ${{number + 1}} of ${{plan.pages.length}}`);
    if (page.image) {{
      const files = folder.getFilesByName(page.image);
      if (!files.hasNext()) throw new Error(`${{page.image}} is not in the folder of images`);
      form.addImageItem().setTitle(page.imageTitle).setHelpText(page.text)
        .setImage(files.next().getBlob()).setWidth({_WIDTH});
    }}
    form.addMultipleChoiceItem().setTitle(page.choice).setChoiceValues(page.options).setRequired(true);
    if (page.difficulty) {{
      form.addScaleItem().setTitle(page.difficulty).setBounds(1, 5)
        .setLabels({", ".join(json.dumps(end) for end in DIFFICULTY_ENDS)}).setRequired(true);
      form.addParagraphTextItem().setTitle(page.why).setRequired(true);
    }}
  }});
  if (form.setPublished) form.setPublished(true);
  console.log(`${{plan.title}}\\nto edit: ${{form.getEditUrl()}}\\nfor participants: ${{form.getPublishedUrl()}}`);
}}
"""
