// Chooses light or dark before anything is drawn. Furo has this as a script inside each page.
document.body.dataset.theme = localStorage.getItem("theme") || "auto";
