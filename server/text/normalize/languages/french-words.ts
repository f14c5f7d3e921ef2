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

const digitNames = "zéro un deux trois quatre cinq six sept huit neuf".split(" ");

const units = unitTable(`
  km = kilomètre / kilomètres
  m = mètre / mètres
  cm = centimètre / centimètres
  mm = millimètre / millimètres
  µm μm = micromètre / micromètres
  kg = kilogramme / kilogrammes
  g = gramme / grammes
  mg = milligramme / milligrammes
  lb = livre / livres [f]
  t = tonne / tonnes [f]
  l L = litre / litres
  ml mL = millilitre / millilitres
  cl cL = centilitre / centilitres
  h = heure / heures [f]
  min mn = minute / minutes [f]
  s = seconde / secondes [f]
  ms = milliseconde / millisecondes [f]
  km/h = kilomètre-heure / kilomètres-heure
  m/s = mètre par seconde / mètres par seconde
  °C ℃ = degré Celsius / degrés Celsius
  °F = degré Fahrenheit / degrés Fahrenheit
  ° = degré / degrés
  m² m2 = mètre carré / mètres carrés
  km² km2 = kilomètre carré / kilomètres carrés
  m³ m3 = mètre cube / mètres cubes
  cm³ = centimètre cube / centimètres cubes
  ha = hectare / hectares
  o = octet / octets
  ko Ko = kilooctet / kilooctets
  Mo = mégaoctet / mégaoctets
  Go = gigaoctet / gigaoctets
  To = téraoctet / téraoctets
  GB = gigaoctet / gigaoctets
  MB = mégaoctet / mégaoctets
  Mbit/s = mégabit par seconde / mégabits par seconde
  Hz = hertz / hertz
  kHz = kilohertz / kilohertz
  MHz = mégahertz / mégahertz
  GHz = gigahertz / gigahertz
  V = volt / volts
  W = watt / watts
  kW = kilowatt / kilowatts
  kWh = kilowattheure / kilowattheures
  dB = décibel / décibels
  kcal = kilocalorie / kilocalories [f]
  µg μg = microgramme / microgrammes
  µl μl = microlitre / microlitres
  µs μs = microseconde / microsecondes [f]
  nm = nanomètre / nanomètres
  mol = mole / moles [f]
  mmol = millimole / millimoles [f]
  dl = décilitre / décilitres
  hPa = hectopascal / hectopascals
  mA = milliampère / milliampères
  mAh = milliampère-heure / milliampères-heures
  MW = mégawatt / mégawatts
  GW = gigawatt / gigawatts
  Wh = wattheure / wattheures
  MWh = mégawattheure / mégawattheures
  Gbit/s = gigabit par seconde / gigabits par seconde
  fps = image par seconde / images par seconde [f]
  x = fois [f]
`);

const currencies = currencyTable(`
  $ = dollar / dollars : cent / cents
  USD = dollar américain / dollars américains : cent / cents
  CAD = dollar canadien / dollars canadiens : cent / cents
  AUD = dollar australien / dollars australiens : cent / cents
  NZD = dollar néo-zélandais / dollars néo-zélandais : cent / cents
  HKD = dollar de Hong Kong / dollars de Hong Kong : cent / cents
  SGD = dollar de Singapour / dollars de Singapour : cent / cents
  MXN = peso mexicain / pesos mexicains : centavo / centavos
  BRL = réal / réaux : centavo / centavos
  EUR = euro / euros : centime / centimes
  £ = livre / livres [f] : penny / pence
  GBP = livre sterling / livres sterling [f] : penny / pence
  CHF = franc suisse / francs suisses : centime / centimes
  ¥ JPY = yen / yens
  CNY = yuan / yuans
  ₹ INR = roupie / roupies [f]
  RUB = rouble / roubles
  KRW = won / wons
  TRY = livre turque / livres turques [f]
  UAH = hryvnia / hryvnias [f]
  ILS = shekel / shekels
  PLN = zloty / zlotys
  CZK = couronne tchèque / couronnes tchèques [f]
  kr SEK NOK DKK = couronne / couronnes [f]
  ¢ = cent / cents
  BTC = bitcoin / bitcoins
`);

const scale = scalesOf(undefined);
const million = scale("million", "millions");
const milliard = scale("milliard", "milliards");

export const frenchWords: LanguageWords = {
  decimal: ",",
  spacedThousands: true,
  fractionAsNumber: true,
  minus: "moins",
  plus: "plus",
  to: "à",
  toAfter: { entre: "et" },
  by: "sur",
  score: "à",
  digitNames,
  about: "environ",
  number: "numéro",
  hashtag: "hashtag",
  versionWord: "version",
  versionDot: "point",
  symbols: wordTable(`
    . = point
    @ = arobase
    - = tiret
    _ = tiret bas
    / = barre oblique
    : = deux-points
    ? = point d'interrogation
    = = égale
    & = et
    # = dièse
    % = pour cent
    + = plus
    ~ = tilde
    \\ = barre inverse
    , = virgule
    ; = point-virgule
    ! = point d'exclamation
    ' = apostrophe
    § = paragraphe
    §§ = paragraphes
    © = copyright
    × = fois
    ÷ = divisé par
    ± = plus ou moins
    < = inférieur à
    > = supérieur à
    ° = degrés
    $ = dollars
    € = euros
    £ = livres
    ‰ = pour mille
    ≥ = supérieur ou égal à
    ≤ = inférieur ou égal à
    ≠ = différent de
    ≈ = environ
    ≡ = identique à
    √ = racine carrée de
    ∛ = racine cubique de
    ∞ = infini
    → = flèche
    ⇒ = flèche
    ← = flèche gauche
    ↑ = flèche haut
    ↓ = flèche bas
    ∑ = somme
    ∏ = produit
    ∫ = intégrale
    ∂ = dérivée partielle
    ∆ = delta
    ∈ = appartient à
    | = barre
    · = point
    ⋅ = point
    − = moins
    ^ = circonflexe
    * = astérisque
    ® = marque déposée
    ™ = marque
    ¬ = non
    ¥ = yens
    ¢ = cents`),
  superscripts: ownEntries({ "²": "au carré", "³": "au cube" }),
  operators: wordTable(`
    + = plus
    - = moins
    − = moins
    = = égale
    × = fois
    * = fois
    / = divisé par
    ÷ = divisé par
    ± = plus ou moins
    < = est inférieur à
    > = est supérieur à
    ^ = puissance
    ≥ = est supérieur ou égal à
    ≤ = est inférieur ou égal à
    ≠ = est différent de
    ≈ = est environ égal à
    ≡ = est identique à
    → = vers
    · = fois
    ⋅ = fois`),
  sign: "signe",
  per: "par",
  divisors: wordTable(`
    j = jour
    sem = semaine
    mois = mois
    an = an
    pers = personne`),
  sayings: wordTable(`
    4x4 = quatre quatre
    24/7/365 = vingt-quatre sept trois cent soixante-cinq
    24/7 = vingt-quatre sept
    24/24 = vingt-quatre sur vingt-quatre
    7/7 = sept sur sept
    50/50 = cinquante cinquante
    C++ = C plus plus
    C# = C dièse
    et/ou = et ou`),
  joints: wordSet("à au et ou - – — & +"),
  dateLeads: {
    always: wordSet(""),
    unlessFraction: wordSet("le du au dès avant après lundi mardi mercredi jeudi vendredi samedi dimanche"),
  },
  percent: ownEntries({ "%": "pour cent", "‰": "pour mille" }),
  percentGender: undefined,
  scales: ownEntries({
    mille: scale("mille", "mille"),
    million,
    millions: million,
    milliard,
    milliards: milliard,
    Mio: million,
    Md: milliard,
    Mds: milliard,
    M: scale("million", "millions", true),
    k: { ...scale("mille", "mille", true), thousand: true },
  }),
  units,
  gluedUnits: wordSet("o x"),
  currencies,
  ...monthTable(`
    janvier janv jan
    février févr fév
    mars
    avril avr
    mai
    juin
    juillet juill juil
    août
    septembre sept
    octobre oct
    novembre nov
    décembre déc`),
  weekdays: wordTable(`
    lun = lundi
    mar = mardi
    mer = mercredi
    jeu = jeudi
    ven = vendredi
    sam = samedi
    dim = dimanche`),
  dayParts: wordSet("matin midi après-midi soir nuit"),
  callWords: wordSet("tél tél. tel téléphone"),
  abbreviations: {
    dotted: wordTable(`
      m = monsieur
      pr = professeur
      dr = docteur
      etc = et cetera
      c.-à-d = c'est-à-dire
      av = avenue
      bd boul = boulevard
      env = environ
      tél = téléphone
      apr = après
      max = maximum
      min = minimum
      cf = confer
      ex = exemple
      hab = habitants
      éd = édition`),
    bare: wordTable(`
      Mme = madame
      Mmes = mesdames
      Mlle = mademoiselle
      Mlles = mesdemoiselles
      MM = messieurs
      Dr = docteur
      Pr = professeur
      Me = maître
      Mgr = monseigneur
      St = saint
      Ste = sainte
      bd = boulevard
      Cie = compagnie
      svp SVP = s'il vous plaît`),
    numbered: wordTable(`
      al = alinéa
      p = page
      pp = pages
      art = article
      chap = chapitre
      vol = volume
      fig = figure
      t = tome`),
    phrases: phraseTable(
      "p ex = par exemple\n S V P = s'il vous plaît\n c -à-d = c'est-à-dire\n c-à d = c'est-à-dire\n c -à-d = c'est-à-dire",
    ),
    final: wordSet("etc"),
  },
  acronyms: {
    words: wordSet(
      "RAM ROM LAN OTAN ONU NASA UNESCO UNICEF SIDA FIFA OPEP CAPES SMIC INSEE CNIL PIN SIM LE LA LES UN UNE DE DU DES ET OU EN AU AUX EST NON OUI PAS QUE QUI CE SA SES SON TU IL ELLE NE SE SUR PAR",
    ),
    spelled: wordSet("RATP FBI USA UE TGV PDG ADN SNCF BNP EDF RER SMS URL USB IA TV OK PC HLM TVA UV"),
    special: ownEntries({}),
  },
};
