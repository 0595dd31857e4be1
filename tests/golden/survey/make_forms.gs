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
    "person": "Your participant ID [plain-1 9fe42d696b66]",
    "pages": [
      {
        "image": "8f362b2f.jpg",
        "imageTitle": "[P01 ed67f936] Image",
        "text": "Scene: Scene 3, with “quotes”, commas,\nand lines\n\nPreference: I like number 14.",
        "choice": "[P01 ed67f936] What should I do about 14?",
        "options": [
          "a. Take the first thing of 14",
          "b. Take the second thing of 14",
          "c. Take the third thing of 14",
          "d. Take the fourth thing of 14",
          "Other (ill-formed, or no single right answer)"
        ],
        "difficulty": "[P01 ed67f936] How difficult was it to choose?",
        "why": "[P01 ed67f936] Why did you choose this? One sentence is enough."
      },
      {
        "image": "08839d46.jpg",
        "imageTitle": "[P02 d805fdf1] Image",
        "text": "Scene: Scene 2, with “quotes”, commas,\nand lines\n\nPreference: I like number 8.",
        "choice": "[P02 d805fdf1] What should I do about 8?",
        "options": [
          "a. Take the first thing of 8",
          "b. Take the second thing of 8",
          "c. Take the third thing of 8",
          "d. Take the fourth thing of 8",
          "Other (ill-formed, or no single right answer)"
        ],
        "difficulty": "[P02 d805fdf1] How difficult was it to choose?",
        "why": "[P02 d805fdf1] Why did you choose this? One sentence is enough."
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
        "image": "0bdee220.jpg",
        "imageTitle": "[P04 c8161a9e] Image",
        "text": "Scene: Scene 1, with “quotes”, commas,\nand lines\n\nPreference: I like number 7.",
        "choice": "[P04 c8161a9e] What should I do about 7?",
        "options": [
          "a. Take the first thing of 7",
          "b. Take the second thing of 7",
          "c. Take the third thing of 7",
          "d. Take the fourth thing of 7",
          "Other (ill-formed, or no single right answer)"
        ],
        "difficulty": "[P04 c8161a9e] How difficult was it to choose?",
        "why": "[P04 c8161a9e] Why did you choose this? One sentence is enough."
      },
      {
        "image": "c040a75f.jpg",
        "imageTitle": "[P05 abeb22a5] Image",
        "text": "Scene: Scene 0, with “quotes”, commas,\nand lines\n\nPreference: I like number 1.",
        "choice": "[P05 abeb22a5] What should I do about 1?",
        "options": [
          "a. Take the first thing of 1",
          "b. Take the second thing of 1",
          "c. Take the third thing of 1",
          "d. Take the fourth thing of 1",
          "Other (ill-formed, or no single right answer)"
        ],
        "difficulty": "[P05 abeb22a5] How difficult was it to choose?",
        "why": "[P05 abeb22a5] Why did you choose this? One sentence is enough."
      }
    ]
  });
}
