import type { LanguageWords } from "../common/language.ts";
import {
  currencyTable,
  monthTable,
  ownEntries,
  phraseTable,
  scalesOf,
  unitTable,
  wordSet,
  wordTable,
} from "../common/tables.ts";

const digitNames = "null eins zwei drei vier fünf sechs sieben acht neun".split(" ");

const units = unitTable(`
  km = Kilometer
  m = Meter
  cm = Zentimeter
  mm = Millimeter
  µm μm = Mikrometer
  kg = Kilogramm
  g = Gramm
  mg = Milligramm
  t = Tonne / Tonnen [f]
  l L = Liter
  ml = Milliliter
  cl = Zentiliter
  h Std = Stunde / Stunden [f]
  min Min = Minute / Minuten [f]
  s Sek = Sekunde / Sekunden [f]
  ms = Millisekunde / Millisekunden [f]
  km/h = Kilometer pro Stunde
  m/s = Meter pro Sekunde
  °C ℃ = Grad Celsius
  °F = Grad Fahrenheit
  ° = Grad
  m² m2 qm = Quadratmeter
  km² km2 = Quadratkilometer
  m³ m3 = Kubikmeter
  cm³ = Kubikzentimeter
  ha = Hektar
  KB kB = Kilobyte
  MB = Megabyte
  GB = Gigabyte
  TB = Terabyte
  Mbit/s = Megabit pro Sekunde
  Hz = Hertz
  kHz = Kilohertz
  MHz = Megahertz
  GHz = Gigahertz
  V = Volt
  W = Watt
  kW = Kilowatt
  kWh = Kilowattstunde / Kilowattstunden [f]
  PS = P S
  dB = Dezibel
  kcal = Kilokalorie / Kilokalorien [f]
  µg μg = Mikrogramm
  µl μl = Mikroliter
  µs μs = Mikrosekunde / Mikrosekunden [f]
  nm = Nanometer
  mol = Mol
  mmol = Millimol
  dl = Deziliter
  hPa = Hektopascal
  mA = Milliampere
  mAh = Milliamperestunde / Milliamperestunden [f]
  MW = Megawatt
  GW = Gigawatt
  Wh = Wattstunde / Wattstunden [f]
  MWh = Megawattstunde / Megawattstunden [f]
  Gbit/s = Gigabit pro Sekunde
  fps = Bild pro Sekunde / Bilder pro Sekunde
  x = mal
`);

const currencies = currencyTable(`
  $ = Dollar : Cent
  USD = U S Dollar : Cent
  CAD = kanadische Dollar : Cent
  AUD = australische Dollar : Cent
  NZD = Neuseeland-Dollar : Cent
  HKD = Hongkong-Dollar : Cent
  SGD = Singapur-Dollar : Cent
  MXN = mexikanische Peso : Centavo / Centavos
  BRL = Real / Reais : Centavo / Centavos
  EUR Euro = Euro : Cent
  £ = Pfund : Penny / Pence
  GBP = Britische Pfund : Penny / Pence
  CHF = Schweizer Franken : Rappen
  Fr = Franken : Cent
  ¥ JPY = Yen
  CNY = Yuan
  ₹ INR = Rupie / Rupien [f]
  RUB = Rubel
  KRW = Won
  TRY = Lira / Lira [f]
  UAH = Hrywnja / Hrywnja [f]
  ILS = Schekel
  PLN = Zloty
  CZK = tschechische Krone / tschechische Kronen [f]
  kr SEK NOK DKK = Krone / Kronen [f]
  ¢ ct Ct = Cent
  BTC = Bitcoin
`);

const scale = scalesOf("feminine");
const million = scale("Million", "Millionen");
const milliard = scale("Milliarde", "Milliarden");

export const germanWords: LanguageWords = {
  decimal: ",",
  spacedThousands: true,
  fractionAsNumber: false,
  minus: "minus",
  plus: "plus",
  to: "bis",
  toAfter: { zwischen: "und" },
  by: "mal",
  score: "zu",
  digitNames,
  about: "etwa",
  number: "Nummer",
  hashtag: "Hashtag",
  versionWord: "Version",
  versionDot: "Punkt",
  symbols: wordTable(`
    . = Punkt
    @ = ät
    - = Bindestrich
    _ = Unterstrich
    / = Schrägstrich
    : = Doppelpunkt
    ? = Fragezeichen
    = = gleich
    & = und
    # = Raute
    % = Prozent
    + = plus
    ~ = Tilde
    \\ = umgekehrter Schrägstrich
    , = Komma
    ; = Semikolon
    ! = Ausrufezeichen
    ' = Apostroph
    § = Paragraph
    §§ = Paragraphen
    © = Copyright
    × = mal
    ÷ = geteilt durch
    ± = plus minus
    < = kleiner als
    > = größer als
    ° = Grad
    $ = Dollar
    € = Euro
    £ = Pfund
    ‰ = Promille
    ≥ = größer oder gleich
    ≤ = kleiner oder gleich
    ≠ = ungleich
    ≈ = ungefähr
    ≡ = identisch mit
    √ = Wurzel aus
    ∛ = Kubikwurzel aus
    ∞ = unendlich
    → = Pfeil
    ⇒ = Pfeil
    ← = Pfeil links
    ↑ = Pfeil hoch
    ↓ = Pfeil runter
    ∑ = Summe
    ∏ = Produkt
    ∫ = Integral
    ∂ = partiell
    ∆ = Delta
    ∈ = Element von
    | = Strich
    · = Punkt
    ⋅ = Punkt
    − = minus
    ^ = Zirkumflex
    * = Sternchen
    ® = registriert
    ™ = Warenzeichen
    ¬ = nicht
    ¥ = Yen
    ¢ = Cent`),
  superscripts: ownEntries({ "²": "Quadrat", "³": "hoch drei" }),
  operators: wordTable(`
    + = plus
    - = minus
    − = minus
    = = gleich
    × = mal
    * = mal
    / = geteilt durch
    ÷ = geteilt durch
    ± = plus minus
    < = kleiner als
    > = größer als
    ^ = hoch
    ≥ = größer oder gleich
    ≤ = kleiner oder gleich
    ≠ = ungleich
    ≈ = ungefähr gleich
    ≡ = identisch mit
    → = nach
    · = mal
    ⋅ = mal`),
  sign: "Zeichen",
  per: "pro",
  divisors: wordTable(`
    Mon Mo = Monat
    Wo = Woche
    J = Jahr
    d = Tag
    Pers P = Person
    Stk St = Stück`),
  sayings: wordTable(`
    4x4 = vier mal vier
    24/7/365 = vierundzwanzig sieben dreihundertfünfundsechzig
    24/7 = vierundzwanzig sieben
    50/50 = fünfzig fünfzig
    C++ = C plus plus
    C# = C sharp
    und/oder = und oder`),
  joints: wordSet("bis und oder u - – — & +"),
  dateLeads: { always: wordSet(""), unlessFraction: wordSet("") },
  percent: ownEntries({ "%": "Prozent", "‰": "Promille" }),
  percentGender: "masculine",
  scales: ownEntries({
    Million: million,
    Millionen: million,
    Mio: million,
    Milliarde: milliard,
    Milliarden: milliard,
    Mrd: milliard,
    Tsd: { ...scale("Tausend", "Tausend"), thousand: true },
    M: { ...million, short: true },
    k: { ...scale("Tausend", "Tausend", true), thousand: true },
  }),
  units,
  gluedUnits: wordSet("x"),
  currencies,
  ...monthTable(`
    Januar Jan Jänner
    Februar Feb
    März Mär Mrz
    April Apr
    Mai
    Juni Jun
    Juli Jul
    August Aug
    September Sep Sept
    Oktober Okt
    November Nov
    Dezember Dez`),
  weekdays: wordTable(`
    mo = Montag
    di = Dienstag
    mi = Mittwoch
    do = Donnerstag
    fr = Freitag
    sa = Samstag
    so = Sonntag`),
  dayParts: wordSet("früh morgen vormittag mittag nachmittag abend nacht"),
  sentenceStarters: wordSet(
    "Ab Aber Alle Alles Als Am An Auch Auf Aus Außerdem Bei Beim Bis Bitte Da Danach Dann Das Dazu Den Denn Der Des Deshalb Die Dies Diese Dieser Dieses Doch Dort Du Ein Eine Einen Einer Er Es Für Gegen Heute Hier Ich Im In Jede Jeder Jedes Kein Keine Man Mein Meine Mit Nach Nicht Nun Nur Ob Oder Ohne Seit Sie Sind So Sonst Über Um Und Uns Unser Unsere Unter Vielen Vom Von Vor Wann War Was Weil Wenn Wer Wie Wir Wird Wo Zu Zum Zur Zwischen",
  ),
  callWords: new Set(["tel", "telefon", "plz", "postleitzahl", "rufen sie", "wählen sie", "notruf"]),
  abbreviations: {
    dotted: wordTable(`
      dr = Doktor
      prof = Professor
      hr = Herr
      hrn = Herrn
      fr = Frau
      usw = und so weiter
      bzw = beziehungsweise
      u = und
      ca = circa
      nr = Nummer
      str = Straße
      evtl = eventuell
      ggf = gegebenenfalls
      inkl = inklusive
      exkl = exklusive
      zzgl = zuzüglich
      mwst = Mehrwertsteuer
      vgl = vergleiche
      st = Sankt
      geb = geborene
      sog = sogenannte
      max = maximal
      min = minimal
      tel = Telefon
      mio = Millionen
      mrd = Milliarden
      etc = et cetera
      bes = besonders
      allg = allgemein
      dipl = Diplom
      ing = Ingenieur
      einschl = einschließlich
      gegr = gegründet
      std = Stunden
      hbf = Hauptbahnhof
      lt = laut
      ff = fortfolgende`),
    bare: ownEntries({}),
    numbered: wordTable(`
      S = Seite
      Nr = Nummer
      Kap = Kapitel
      Abs = Absatz
      Art = Artikel
      Bd = Band
      Abb = Abbildung
      Tab = Tabelle
      Ziff = Ziffer`),
    phrases: phraseTable(`
      z B = zum Beispiel
      d h = das heißt
      u a = unter anderem
      u U = unter Umständen
      v Chr = vor Christus
      n Chr = nach Christus
      i d R = in der Regel
      u v m = und vieles mehr
      o g = oben genannt
      m E = meines Erachtens
      i V = in Vertretung
      z Zt = zurzeit
      z Z = zurzeit
      o Ä = oder Ähnliches
      s o = siehe oben
      s u = siehe unten
      v a = vor allem
      z T = zum Teil
      i A = im Auftrag
      a D = außer Dienst`),
    final: wordSet("usw etc mwst str hbf std"),
  },
  acronyms: {
    words: wordSet(
      "RAM ROM LAN NATO NASA UNO UNESCO UNICEF AIDS FIFA UEFA OPEC BAFÖG PIN SIM TÜV COVID DAX DIN ICH DU ER SIE ES WIR IHR UND ODER DER DIE DAS EIN IN AN AUF ZU MIT IST NICHT NEIN JA SO WAS WER WIE WO AB BIS",
    ),
    spelled: wordSet(
      "ADAC FBI EU USA CDU CSU SPD FDP ARD ZDF BMW AOK DHL LKW PKW EDV IBAN USB URL KI TV PC VW DVD",
    ),
    special: ownEntries({ GmbH: "G M B H", AG: "A G", KfZ: "K F Z", Kfz: "K F Z", IBAN: "IBAN" }),
  },
};
