/** The sample sentence of a voice, by its language (ISO 639-3): "Hello, I am glad to read this to you." */
export const samples: Readonly<Record<string, string>> = {
  eng: "Hello, I am glad to read this to you.",
  spa: "Hola, me alegra leerle esto.",
  fra: "Bonjour, je suis ravi de vous lire ceci.",
  deu: "Guten Tag, ich lese Ihnen das gerne vor.",
  ita: "Buongiorno, sono lieto di leggerle questo.",
  por: "Olá, tenho prazer em ler isto para você.",
  nld: "Hallo, ik lees u dit graag voor.",
  pol: "Dzień dobry, z przyjemnością to przeczytam.",
  rus: "Здравствуйте, я с радостью это прочитаю.",
  hin: "नमस्ते, मुझे यह पढ़कर सुनाने में खुशी है।",
  ara: "مرحبا، يسعدني أن أقرأ لك هذا.",
  tur: "Merhaba, bunu size memnuniyetle okurum.",
  swe: "Hej, jag läser gärna det här för dig.",
  ell: "Γεια σας, χαίρομαι που σας το διαβάζω.",
};
