/**
 * Sentences for the recognizer and for measuring voices. They have common words without names and numbers.
 */
export const englishSentences = [
  "The children played in the garden until the sun went down.",
  "She opened the window and looked at the river.",
  "My brother works in a small office near the station.",
  "We had bread and cheese for lunch on the train.",
  "The old man told us a story about the sea.",
  "Please close the door when you leave the house.",
  "They built a new school at the end of the street.",
  "He wrote a long letter to his friend in the city.",
  "The doctor said that I should drink more water.",
  "It was raining when we came home last night.",
  "The teacher asked the class to read the first page.",
  "I bought a blue coat because the winter is cold.",
  "Her father drives a truck for a large company.",
  "The dog ran across the field after the ball.",
  "You can see the mountains from the kitchen window.",
  "The meeting will start at nine in the morning.",
  "There were many people waiting in front of the bank.",
  "He put the book back on the table and left the room.",
  "The farmer has two horses and a hundred sheep.",
  "We will visit our family at the end of the month.",
] as const;

/**
 * Two texts for each language of the catalogue, by the ISO 639-3 code. They are long enough to measure a
 * voice.
 */
export const longTexts: Readonly<Record<string, readonly [string, string]>> = {
  eng: [englishSentences.slice(0, 6).join(" "), englishSentences.slice(6, 12).join(" ")],
  spa: [
    "Los niños jugaron en el jardín hasta la noche. Mi hermano trabaja en una oficina pequeña cerca de la estación. Ella abrió la ventana y miró el río.",
    "El médico dijo que debía beber más agua. Construyeron una escuela nueva al final de la calle. Llovía cuando volvimos a casa.",
  ],
  fra: [
    "Les enfants ont joué dans le jardin jusqu'au soir. Mon frère travaille dans un petit bureau près de la gare. Elle ouvrit la fenêtre et regarda la rivière.",
    "Le médecin a dit que je devais boire plus d'eau. Ils ont construit une école au bout de la rue. Il pleuvait quand nous sommes rentrés.",
  ],
  deu: [
    "Die Kinder spielten im Garten, bis die Sonne unterging. Mein Bruder arbeitet in einem kleinen Büro am Bahnhof. Sie öffnete das Fenster und sah auf den Fluss.",
    "Der Arzt sagte, dass ich mehr Wasser trinken soll. Am Ende der Straße bauten sie eine neue Schule. Es regnete, als wir nach Hause kamen.",
  ],
  ita: [
    "I bambini hanno giocato in giardino fino a sera. Mio fratello lavora in un piccolo ufficio vicino alla stazione. Lei aprì la finestra e guardò il fiume.",
    "Il medico ha detto che devo bere più acqua. Hanno costruito una scuola nuova in fondo alla strada. Pioveva quando siamo tornati a casa.",
  ],
  por: [
    "As crianças brincaram no jardim até a noite. Meu irmão trabalha em um pequeno escritório perto da estação. Ela abriu a janela e olhou para o rio.",
    "O médico disse que devo beber mais água. Construíram uma escola nova no fim da rua. Chovia quando voltamos para casa.",
  ],
  nld: [
    "De kinderen speelden in de tuin tot de zon onderging. Mijn broer werkt in een klein kantoor bij het station. Zij opende het raam en keek naar de rivier.",
    "De dokter zei dat ik meer water moet drinken. Aan het einde van de straat bouwden ze een nieuwe school. Het regende toen we thuis kwamen.",
  ],
  pol: [
    "Dzieci bawiły się w ogrodzie do wieczora. Mój brat pracuje w małym biurze niedaleko dworca. Ona otworzyła okno i spojrzała na rzekę.",
    "Lekarz powiedział, że mam pić więcej wody. Na końcu ulicy zbudowali nową szkołę. Padał deszcz, kiedy wróciliśmy do domu.",
  ],
  rus: [
    "Дети играли в саду до вечера. Мой брат работает в маленькой конторе у вокзала. Она открыла окно и посмотрела на реку.",
    "Врач сказал, что мне надо пить больше воды. В конце улицы построили новую школу. Шёл дождь, когда мы вернулись домой.",
  ],
  hin: [
    "बच्चे शाम तक बगीचे में खेलते रहे। मेरा भाई स्टेशन के पास एक छोटे दफ़्तर में काम करता है। उसने खिड़की खोली और नदी को देखा।",
    "डॉक्टर ने कहा कि मुझे ज़्यादा पानी पीना चाहिए। सड़क के अंत में उन्होंने एक नया स्कूल बनाया। जब हम घर लौटे तब बारिश हो रही थी।",
  ],
  ara: [
    "لعب الأطفال في الحديقة حتى المساء. يعمل أخي في مكتب صغير قرب المحطة. فتحت النافذة ونظرت إلى النهر.",
    "قال الطبيب إن علي أن أشرب الماء أكثر. بنوا مدرسة جديدة في آخر الشارع. كان المطر ينزل عندما رجعنا إلى البيت.",
  ],
  tur: [
    "Çocuklar akşama kadar bahçede oynadı. Kardeşim istasyonun yanında küçük bir büroda çalışıyor. Pencereyi açtı ve nehre baktı.",
    "Doktor daha çok su içmem gerektiğini söyledi. Sokağın sonunda yeni bir okul yaptılar. Eve döndüğümüzde yağmur yağıyordu.",
  ],
  swe: [
    "Barnen lekte i trädgården tills solen gick ner. Min bror arbetar på ett litet kontor nära stationen. Hon öppnade fönstret och såg på floden.",
    "Läkaren sade att jag ska dricka mer vatten. I slutet av gatan byggde de en ny skola. Det regnade när vi kom hem.",
  ],
  ell: [
    "Τα παιδιά έπαιζαν στον κήπο ως το βράδυ. Ο αδελφός μου δουλεύει σε ένα μικρό γραφείο κοντά στον σταθμό. Άνοιξε το παράθυρο και κοίταξε το ποτάμι.",
    "Ο γιατρός είπε ότι πρέπει να πίνω περισσότερο νερό. Στο τέλος του δρόμου έχτισαν ένα νέο σχολείο. Έβρεχε όταν γυρίσαμε στο σπίτι.",
  ],
};

/** Returns a text with control characters, lone surrogates, emoji, right-to-left text and combining marks. */
export function randomText(random: () => number): string {
  const pools = [
    [0x20, 0x7e],
    [0x00, 0x1f],
    [0xd800, 0xdfff],
    [0x1f300, 0x1faff],
    [0x0590, 0x06ff],
    [0x0300, 0x036f],
    [0x3040, 0x30ff],
    [0x4e00, 0x9fff],
    [0x2000, 0x206f],
    [0xfe00, 0xffff],
    [0x0900, 0x0dff],
  ] as const;
  const length = Math.floor(random() * 60);
  return Array.from({ length }, () => {
    if (random() < 0.15) return " ";
    const [from, to] = pools[Math.floor(random() * pools.length)] ?? pools[0];
    return String.fromCodePoint(from + Math.floor(random() * (to - from + 1)));
  }).join("");
}
