// Makes the survey's forms in your Google account. No key is needed:
// 1. Put the images (the folder images/ beside this file) into a folder of your Drive.
// 2. At script.google.com make a new project, paste this file, and put the folder's id below
//    (the end of its address: https://drive.google.com/drive/folders/ID).
// 3. Run one function after the other: make_plain_1, make_plain_2, ...; each logs its form's addresses.
const IMAGES_FOLDER_ID = 'PUT THE ID HERE';

function makeForm(plan) {
  const form = FormApp.create(plan.title).setDescription(plan.description);
  form.setCollectEmail(false).setProgressBar(true).setAllowResponseEdits(false);
  form.addTextItem().setTitle(plan.person).setRequired(true);
  const folder = DriveApp.getFolderById(IMAGES_FOLDER_ID);
  plan.pages.forEach((page, number) => {
    form.addPageBreakItem().setTitle(`Question ${number + 1} of ${plan.pages.length}`);
    if (page.image) {
      const files = folder.getFilesByName(page.image);
      if (!files.hasNext()) throw new Error(`${page.image} is not in the folder of images`);
      form.addImageItem().setTitle(page.imageTitle).setHelpText(page.text)
        .setImage(files.next().getBlob()).setWidth(740);
    }
    form.addMultipleChoiceItem().setTitle(page.choice).setChoiceValues(page.options).setRequired(true);
    if (page.difficulty) {
      form.addScaleItem().setTitle(page.difficulty).setBounds(1, 5)
        .setLabels("Very easy", "Very difficult").setRequired(true);
      form.addParagraphTextItem().setTitle(page.why).setRequired(true);
    }
  });
  if (form.setPublished) form.setPublished(true);
  console.log(`${plan.title}\nto edit: ${form.getEditUrl()}\nfor participants: ${form.getPublishedUrl()}`);
}

function make_plain_1() {
  makeForm({
    "title": "Everyday preferences (plain-1)",
    "description": "Each page shows an image, a scene, and a preference that somebody states. Choose the action that suits this preference best, whatever you would like yourself; say how difficult it was to choose, and in a few words why.",
    "person": "Your participant ID [plain-1 e5d2cf524f77]",
    "pages": [
      {
        "image": "c3fa1c42.png",
        "imageTitle": "[P01 bba29669] Image",
        "text": "Scene: Scene 3, with “quotes”, commas,\nand lines\n\nPreference: I like number 14.",
        "choice": "[P01 bba29669] What should I do about 14?",
        "options": [
          "a. Take the first thing of 14",
          "b. Take the second thing of 14",
          "c. Take the third thing of 14",
          "d. Take the fourth thing of 14",
          "Other (ill-formed, or no single right answer)"
        ],
        "difficulty": "[P01 bba29669] How difficult was it to choose?",
        "why": "[P01 bba29669] Why did you choose this? One sentence is enough."
      },
      {
        "image": "6f14882f.png",
        "imageTitle": "[P02 4b545738] Image",
        "text": "Scene: Scene 0, with “quotes”, commas,\nand lines\n\nPreference: I like number 3.",
        "choice": "[P02 4b545738] What should I do about 3?",
        "options": [
          "a. Take the first thing of 3",
          "b. Take the second thing of 3",
          "c. Take the third thing of 3",
          "d. Take the fourth thing of 3",
          "Other (ill-formed, or no single right answer)"
        ],
        "difficulty": "[P02 4b545738] How difficult was it to choose?",
        "why": "[P02 4b545738] Why did you choose this? One sentence is enough."
      },
      {
        "image": null,
        "imageTitle": "[P03 check] Image",
        "text": "",
        "choice": "[P03 check] This question only shows that you read with care. Please choose “Open the drawer”.",
        "options": [
          "a. Close the window",
          "b. Water the plant",
          "c. Switch off the lamp",
          "d. Open the drawer"
        ],
        "difficulty": null,
        "why": null
      },
      {
        "image": "3d92b21c.png",
        "imageTitle": "[P04 d620fb56] Image",
        "text": "Scene: Scene 2, with “quotes”, commas,\nand lines\n\nPreference: I like number 8.",
        "choice": "[P04 d620fb56] What should I do about 8?",
        "options": [
          "a. Take the first thing of 8",
          "b. Take the second thing of 8",
          "c. Take the third thing of 8",
          "d. Take the fourth thing of 8",
          "Other (ill-formed, or no single right answer)"
        ],
        "difficulty": "[P04 d620fb56] How difficult was it to choose?",
        "why": "[P04 d620fb56] Why did you choose this? One sentence is enough."
      },
      {
        "image": "f3a98ee8.png",
        "imageTitle": "[P05 516793d1] Image",
        "text": "Scene: Scene 1, with “quotes”, commas,\nand lines\n\nPreference: I like number 5.",
        "choice": "[P05 516793d1] What should I do about 5?",
        "options": [
          "a. Take the first thing of 5",
          "b. Take the second thing of 5",
          "c. Take the third thing of 5",
          "d. Take the fourth thing of 5",
          "Other (ill-formed, or no single right answer)"
        ],
        "difficulty": "[P05 516793d1] How difficult was it to choose?",
        "why": "[P05 516793d1] Why did you choose this? One sentence is enough."
      }
    ]
  });
}
