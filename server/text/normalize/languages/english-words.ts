import type { LanguageWords } from "../common/language.ts";
import {
  currencyTable,
  monthTable,
  ownEntries,
  phraseTable,
  unitTable,
  wordSet,
  wordTable,
} from "../common/tables.ts";

const digitNames = "zero one two three four five six seven eight nine".split(" ");

const units = unitTable(`
  km kms = kilometer / kilometers
  m = meter / meters
  cm = centimeter / centimeters
  mm = millimeter / millimeters
  µm μm = micrometer / micrometers
  nm = nanometer / nanometers
  mi = mile / miles
  ft = foot / feet
  in = inch / inches
  yd yds = yard / yards
  kg kgs = kilogram / kilograms
  g = gram / grams
  mg = milligram / milligrams
  µg μg = microgram / micrograms
  lb lbs = pound / pounds
  oz = ounce / ounces
  tbsp = tablespoon / tablespoons
  tsp = teaspoon / teaspoons
  t = ton / tons
  l L = liter / liters
  ml mL = milliliter / milliliters
  cl = centiliter / centiliters
  gal = gallon / gallons
  h hr hrs = hour / hours
  min mins = minute / minutes
  s sec secs = second / seconds
  ms = millisecond / milliseconds
  km/h kph kmh = kilometer per hour / kilometers per hour
  m/s = meter per second / meters per second
  mph = mile per hour / miles per hour
  rpm = revolution per minute / revolutions per minute
  °C ℃ = degree Celsius / degrees Celsius
  °F ℉ = degree Fahrenheit / degrees Fahrenheit
  ° = degree / degrees
  m² m2 = square meter / square meters
  km² km2 = square kilometer / square kilometers
  m³ m3 = cubic meter / cubic meters
  cm³ cm3 = cubic centimeter / cubic centimeters
  kB KB = kilobyte / kilobytes
  MB = megabyte / megabytes
  GB = gigabyte / gigabytes
  TB = terabyte / terabytes
  kbps = kilobit per second / kilobits per second
  Mbps Mbit/s = megabit per second / megabits per second
  Gbps = gigabit per second / gigabits per second
  Hz = hertz / hertz
  kHz = kilohertz / kilohertz
  MHz = megahertz / megahertz
  GHz = gigahertz / gigahertz
  V = volt / volts
  W = watt / watts
  kW = kilowatt / kilowatts
  MW = megawatt / megawatts
  kWh = kilowatt hour / kilowatt hours
  mAh = milliampere hour / milliampere hours
  A = ampere / amperes
  Ω = ohm / ohms
  dB = decibel / decibels
  kcal = kilocalorie / kilocalories
  cal = calorie / calories
  px = pixel / pixels
  Pa = pascal / pascals
  hPa = hectopascal / hectopascals
  N = newton / newtons
  J = joule / joules
  µl μl = microliter / microliters
  µs μs = microsecond / microseconds
  mol = mole / moles
  mmol = millimole / millimoles
  dl = deciliter / deciliters
  mA = milliamp / milliamps
  GW = gigawatt / gigawatts
  Wh = watt hour / watt hours
  MWh = megawatt hour / megawatt hours
  Gbit/s = gigabit per second / gigabits per second
  fps = frame per second / frames per second
  x = time / times
`);

const currencies = currencyTable(`
  $ = dollar / dollars : cent / cents
  USD = U S dollar / U S dollars : cent / cents
  CAD = Canadian dollar / Canadian dollars : cent / cents
  AUD = Australian dollar / Australian dollars : cent / cents
  NZD = New Zealand dollar / New Zealand dollars : cent / cents
  HKD = Hong Kong dollar / Hong Kong dollars : cent / cents
  SGD = Singapore dollar / Singapore dollars : cent / cents
  MXN = Mexican peso / Mexican pesos : centavo / centavos
  BRL = Brazilian real / Brazilian reais : centavo / centavos
  EUR = euro / euros : cent / cents
  £ = pound / pounds : penny / pence
  GBP = British pound / British pounds : penny / pence
  ¥ JPY = yen
  CNY = yuan
  ₹ = rupee / rupees
  INR = Indian rupee / Indian rupees
  RUB = ruble / rubles
  KRW = won
  TRY = lira / liras
  UAH = hryvnia / hryvnias
  ILS = shekel / shekels
  PLN = zloty / zlotys
  CZK = Czech crown / Czech crowns
  kr SEK NOK DKK = crown / crowns
  CHF = Swiss franc / Swiss francs : centime / centimes
  ¢ = cent / cents
  BTC = bitcoin / bitcoins
`);

const scale = (one: string, short = false) => ({ one, many: one, gender: undefined, short });

export const englishWords: LanguageWords = {
  decimal: ".",
  spacedThousands: false,
  fractionAsNumber: false,
  minus: "minus",
  plus: "plus",
  to: "to",
  toAfter: { between: "and" },
  by: "by",
  score: "to",
  digitNames,
  about: "about",
  number: "number",
  hashtag: "hashtag",
  versionWord: "version",
  versionDot: "point",
  symbols: wordTable(`
    . = dot
    @ = at
    - = dash
    _ = underscore
    / = slash
    : = colon
    ? = question mark
    = = equals
    & = and
    # = hash
    % = percent
    + = plus
    ~ = tilde
    \\ = backslash
    , = comma
    ; = semicolon
    ! = exclamation mark
    ' = apostrophe
    § = section
    §§ = sections
    © = copyright
    × = times
    ÷ = divided by
    ± = plus or minus
    < = less than
    > = greater than
    ° = degrees
    $ = dollars
    € = euros
    £ = pounds
    ‰ = per thousand
    ≥ = greater than or equal to
    ≤ = less than or equal to
    ≠ = not equal to
    ≈ = approximately
    ≡ = identical to
    √ = square root of
    ∛ = cube root of
    ∞ = infinity
    → = arrow
    ⇒ = arrow
    ← = left arrow
    ↑ = up arrow
    ↓ = down arrow
    ∑ = sum
    ∏ = product
    ∫ = integral
    ∂ = partial
    ∆ = delta
    ∈ = in
    | = bar
    · = dot
    ⋅ = dot
    − = minus
    ^ = caret
    * = asterisk
    ® = registered
    ™ = trademark
    ¬ = not
    ¥ = yen
    ¢ = cents
    µ = micro`),
  superscripts: ownEntries({ "²": "squared", "³": "cubed" }),
  operators: wordTable(`
    ^ = to the power of
    + = plus
    - = minus
    − = minus
    = = equals
    × = times
    * = times
    / = divided by
    ÷ = divided by
    ± = plus or minus
    < = is less than
    > = is greater than
    ≥ = is greater than or equal to
    ≤ = is less than or equal to
    ≠ = is not equal to
    ≈ = is approximately
    ≡ = is identical to
    → = to
    · = times
    ⋅ = times`),
  sign: "sign",
  per: "per",
  divisors: wordTable(`
    mo mth = month
    yr = year
    wk = week
    d = day
    hr = hour
    pp = person
    req = request
    sq.ft sqft = square foot`),
  sayings: wordTable(`
    4x4 = four by four
    I/O = I O
    24/7/365 = twenty-four seven three sixty-five
    24/7 = twenty-four seven
    9/11 = nine eleven
    50/50 = fifty fifty
    401k 401(k = four oh one K
    w/o = without
    w/ = with
    c/o = care of
    and/or = and or
    C++ = C plus plus
    C# = C sharp
    F# = F sharp`),
  joints: wordSet("to through thru and or until till - – — & +"),
  dateLeads: {
    always: wordSet(
      "on due dated until till since through deadline starting effective monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun",
    ),
    unlessFraction: wordSet("by before after from to between and of the date expires born"),
  },
  percent: ownEntries({ "%": "percent", "‰": "per thousand" }),
  percentGender: undefined,
  scales: ownEntries({
    thousand: scale("thousand"),
    million: scale("million"),
    billion: scale("billion"),
    trillion: scale("trillion"),
    k: { ...scale("thousand", true), thousand: true },
    K: { ...scale("thousand", true), thousand: true },
    m: scale("million", true),
    M: scale("million", true),
    mn: scale("million", true),
    bn: scale("billion", true),
    B: scale("billion", true),
  }),
  units,
  gluedUnits: wordSet("in a A V N J t h x"),
  currencies,
  ...monthTable(`
    January Jan
    February Feb
    March Mar
    April Apr
    May
    June Jun
    July Jul
    August Aug
    September Sep Sept
    October Oct
    November Nov
    December Dec`),
  weekdays: wordTable(`
    mon = Monday
    tue tues = Tuesday
    wed = Wednesday
    thu thur thurs = Thursday
    fri = Friday
    sat = Saturday
    sun = Sunday`),
  dayParts: wordSet("morning afternoon evening night noon"),
  callWords: wordSet("call dial phone tel tel. telephone text fax"),
  abbreviations: {
    dotted: wordTable(`
      mr = mister
      mrs = missus
      ms = miz
      prof = professor
      sr = senior
      jr = junior
      gen = general
      col = colonel
      capt = captain
      lt = lieutenant
      sgt = sergeant
      cpl = corporal
      maj = major
      gov = governor
      sen = senator
      rep = representative
      rev = reverend
      hon = honorable
      pres = president
      vs = versus
      etc = et cetera
      approx = approximately
      dept = department
      inc = incorporated
      ltd = limited
      corp = corporation
      co = company
      bros = brothers
      ave = avenue
      blvd = boulevard
      rd = road
      ln = lane
      hwy = highway
      apt = apartment
      mt = mount
      ft = fort
      est = established
      min = minimum
      max = maximum
      e.g = for example
      i.e = that is
      cf = compare
      ph.d = P H D
      tel = telephone
      ext = extension
      incl = including
      fl = fluid
      oz = ounces
      misc = miscellaneous`),
    bare: ownEntries({ PhD: "P H D", vs: "versus" }),
    numbered: wordTable(`
      No no Nr = number
      Nos nos = numbers
      p P = page
      pp = pages
      ch Ch = chapter
      vol Vol = volume
      fig Fig = figure
      art Art = article
      sec Sec = section
      par Par = paragraph`),
    phrases: phraseTable("e g = for example\n i e = that is\n a k a = also known as\n Ph D = P H D"),
    final: wordSet("etc inc ltd corp co bros jr sr ave blvd rd ln hwy dept ph.d"),
  },
  acronyms: {
    words:
      wordSet(`NASA NATO UNESCO UNICEF OPEC FIFA AIDS SCUBA LASER RADAR SONAR RAM ROM PIN SIM GIF DOS COVID SARS ZIP SWAT OSHA
      NAFTA ASCII BIOS CAPTCHA UEFA I A AN AND ARE AS AT BE BUT BY CAN DO FOR GO HAD HAS HE HER HIS HOW IF IN IS IT ITS ME MY NEW
      NO NOT NOW OF OFF OLD ON ONE OR OUR OUT SHE SO THE TO TOO TWO UP USE WAS WAY WE WHO WHY YES YOU ALL ANY AM DID GET GOT LET
      OH BIG DAY END MAN MEN SEE TOP`),
    spelled: wordSet(
      "FBI CIA USA UK UN EU US BBC CNN IBM ATM CEO CFO CTO ASAP FAQ URL USB AI TV OK PC ID IQ UFO AOL MIT UCLA IEEE IOS EULA DIY HIV SOS",
    ),
    special: ownEntries({ JPEG: "J peg", MPEG: "M peg", PhD: "P H D", PhDs: "P H D's" }),
  },
};
