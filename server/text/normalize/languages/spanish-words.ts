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

const digitNames = "cero uno dos tres cuatro cinco seis siete ocho nueve".split(" ");

const units = unitTable(`
  km = kilómetro / kilómetros
  m = metro / metros
  cm = centímetro / centímetros
  mm = milímetro / milímetros
  µm μm = micrómetro / micrómetros
  kg = kilogramo / kilogramos
  g = gramo / gramos
  mg = miligramo / miligramos
  lb lbs = libra / libras [f]
  oz = onza / onzas [f]
  t = tonelada / toneladas [f]
  l L = litro / litros
  ml mL = mililitro / mililitros
  cl = centilitro / centilitros
  h hs = hora / horas [f]
  min = minuto / minutos
  s seg = segundo / segundos
  ms = milisegundo / milisegundos
  km/h = kilómetro por hora / kilómetros por hora
  m/s = metro por segundo / metros por segundo
  °C ℃ ºC = grado Celsius / grados Celsius
  °F ºF = grado Fahrenheit / grados Fahrenheit
  ° = grado / grados
  m² m2 = metro cuadrado / metros cuadrados
  km² km2 = kilómetro cuadrado / kilómetros cuadrados
  m³ m3 = metro cúbico / metros cúbicos
  cm³ = centímetro cúbico / centímetros cúbicos
  ha = hectárea / hectáreas [f]
  KB kB = kilobyte / kilobytes
  MB = megabyte / megabytes
  GB = gigabyte / gigabytes
  TB = terabyte / terabytes
  Mbps = megabit por segundo / megabits por segundo
  Hz = hercio / hercios
  kHz = kilohercio / kilohercios
  MHz = megahercio / megahercios
  GHz = gigahercio / gigahercios
  V = voltio / voltios
  W = vatio / vatios
  kW = kilovatio / kilovatios
  kWh = kilovatio hora / kilovatios hora
  dB = decibelio / decibelios
  kcal = kilocaloría / kilocalorías [f]
  µg μg = microgramo / microgramos
  µl μl = microlitro / microlitros
  µs μs = microsegundo / microsegundos
  nm = nanómetro / nanómetros
  mol = mol / moles
  mmol = milimol / milimoles
  dl = decilitro / decilitros
  hPa = hectopascal / hectopascales
  mA = miliamperio / miliamperios
  mAh = miliamperio hora / miliamperios hora
  MW = megavatio / megavatios
  GW = gigavatio / gigavatios
  Wh = vatio hora / vatios hora
  MWh = megavatio hora / megavatios hora
  Gbit/s = gigabit por segundo / gigabits por segundo
  fps = fotograma por segundo / fotogramas por segundo
  x = vez / veces [f]
`);

const currencies = currencyTable(`
  $ = dólar / dólares : centavo / centavos
  USD = dólar estadounidense / dólares estadounidenses : centavo / centavos
  CAD = dólar canadiense / dólares canadienses : centavo / centavos
  AUD = dólar australiano / dólares australianos : centavo / centavos
  NZD = dólar neozelandés / dólares neozelandeses : centavo / centavos
  HKD = dólar de Hong Kong / dólares de Hong Kong : centavo / centavos
  SGD = dólar de Singapur / dólares de Singapur : centavo / centavos
  MXN = peso mexicano / pesos mexicanos : centavo / centavos
  ARS = peso argentino / pesos argentinos : centavo / centavos
  CLP = peso chileno / pesos chilenos
  COP = peso colombiano / pesos colombianos
  S/ PEN = sol / soles : céntimo / céntimos
  BRL = real / reales : centavo / centavos
  EUR = euro / euros : céntimo / céntimos
  £ = libra / libras [f] : penique / peniques
  GBP = libra esterlina / libras esterlinas [f] : penique / peniques
  CHF = franco suizo / francos suizos : céntimo / céntimos
  ¥ JPY = yen / yenes
  CNY = yuan / yuanes
  ₹ INR = rupia / rupias [f]
  RUB = rublo / rublos
  KRW = won / wones
  TRY = lira turca / liras turcas [f]
  UAH = grivna / grivnas [f]
  ILS = séquel / séqueles
  PLN = esloti / eslotis
  CZK = corona checa / coronas checas [f]
  kr SEK NOK DKK = corona / coronas [f]
  ¢ = centavo / centavos
  BTC = bitcoin / bitcoins
`);

const scale = scalesOf("masculine");
const million = scale("millón", "millones");

export const spanishWords: LanguageWords = {
  decimal: ",",
  spacedThousands: true,
  fractionAsNumber: true,
  minus: "menos",
  plus: "más",
  to: "a",
  toAfter: { entre: "y" },
  by: "por",
  score: "a",
  digitNames,
  about: "aproximadamente",
  number: "número",
  hashtag: "almohadilla",
  versionWord: "versión",
  versionDot: "punto",
  symbols: wordTable(`
    . = punto
    @ = arroba
    - = guion
    _ = guion bajo
    / = barra
    : = dos puntos
    ? = interrogación
    = = igual a
    & = y
    # = almohadilla
    % = por ciento
    + = más
    ~ = tilde
    \\ = barra invertida
    , = coma
    ; = punto y coma
    ! = exclamación
    ' = apóstrofo
    § = sección
    §§ = secciones
    © = copyright
    × = por
    ÷ = entre
    ± = más o menos
    < = menor que
    > = mayor que
    ° = grados
    $ = dólares
    € = euros
    £ = libras
    ‰ = por mil
    ≥ = mayor o igual que
    ≤ = menor o igual que
    ≠ = distinto de
    ≈ = aproximadamente
    ≡ = idéntico a
    √ = raíz cuadrada de
    ∛ = raíz cúbica de
    ∞ = infinito
    → = flecha
    ⇒ = flecha
    ← = flecha izquierda
    ↑ = flecha arriba
    ↓ = flecha abajo
    ∑ = suma
    ∏ = producto
    ∫ = integral
    ∂ = derivada parcial
    ∆ = delta
    ∈ = pertenece a
    | = barra
    · = punto
    ⋅ = punto
    − = menos
    ^ = circunflejo
    * = asterisco
    ® = registrado
    ™ = marca registrada
    ¬ = no
    ¥ = yenes
    ¢ = centavos`),
  superscripts: ownEntries({ "²": "al cuadrado", "³": "al cubo" }),
  operators: wordTable(`
    + = más
    - = menos
    − = menos
    = = igual a
    × = por
    * = por
    / = entre
    ÷ = entre
    ± = más o menos
    < = menor que
    > = mayor que
    ^ = elevado a
    ≥ = mayor o igual que
    ≤ = menor o igual que
    ≠ = distinto de
    ≈ = aproximadamente igual a
    ≡ = idéntico a
    → = hacia
    · = por
    ⋅ = por`),
  sign: "signo",
  per: "por",
  divisors: wordTable(`
    d = día
    sem = semana
    pers = persona`),
  sayings: wordTable(`
    4x4 = cuatro por cuatro
    24/7/365 = veinticuatro siete trescientos sesenta y cinco
    24/7 = veinticuatro siete
    50/50 = cincuenta cincuenta
    C++ = ce más más
    C# = ce sostenido
    y/o = y o
    C/ c/ = calle`),
  joints: wordSet("a al y o e u - – — & +"),
  dateLeads: {
    always: wordSet(""),
    unlessFraction: wordSet("el del al desde hasta lunes martes miércoles jueves viernes sábado domingo"),
  },
  percent: ownEntries({ "%": "por ciento", "‰": "por mil" }),
  percentGender: undefined,
  scales: ownEntries({
    mil: scale("mil", "mil"),
    millón: million,
    millones: million,
    mill: million,
    M: scale("millón", "millones", true),
    k: { ...scale("mil", "mil", true), thousand: true },
  }),
  units,
  gluedUnits: wordSet("a x"),
  currencies,
  ...monthTable(`
    enero ene
    febrero feb
    marzo mar
    abril abr
    mayo may
    junio jun
    julio jul
    agosto ago
    septiembre sept sep setiembre
    octubre oct
    noviembre nov
    diciembre dic`),
  weekdays: wordTable(`
    lun = lunes
    mié = miércoles
    jue = jueves
    vie = viernes
    sáb = sábado
    dom = domingo`),
  dayParts: wordSet("mañana mediodía tarde noche"),
  callWords: new Set(["tel", "teléfono", "llame al", "llamar al", "llama al", "marque el"]),
  abbreviations: {
    dotted: wordTable(`
      sr = señor
      sra = señora
      srta = señorita
      sres = señores
      dr = doctor
      dra = doctora
      d = don
      dña = doña
      ud vd = usted
      uds vds = ustedes
      prof = profesor
      ing = ingeniero
      lic = licenciado
      gral = general
      cía = compañía
      etc = etcétera
      avda av = avenida
      tel tfno = teléfono
      aprox = aproximadamente
      máx = máximo
      mín = mínimo
      sto = santo
      sta = santa
      dpto depto = departamento
      ed = edición
      hab = habitantes`),
    bare: ownEntries({}),
    numbered: wordTable(`
      p pág Pág = página
      s = siglo
      pp págs Págs = páginas
      núm Núm nro Nro = número
      cap Cap = capítulo
      vol Vol = volumen
      art Art = artículo
      fig Fig = figura`),
    phrases: phraseTable(`
      p ej = por ejemplo
      EE UU = Estados Unidos
      RR HH = recursos humanos
      JJ OO = Juegos Olímpicos
      a C = antes de Cristo
      d C = después de Cristo
      P D = posdata`),
    final: wordSet("etc uds ud vd vds cía"),
  },
  acronyms: {
    words: wordSet(
      "RAM ROM LAN ONU OTAN NASA UNESCO UNICEF PIB IVA ONG OVNI SIDA FIFA UEFA OPEP RENFE PIN SIM LED EL LA LOS LAS UN UNA DE DEL EN CON POR NO SÍ SI QUE YO TÚ ES SU MI SE LO LE AL",
    ),
    spelled: wordSet("FBI ADN UE BBVA HTML DVD USB URL TV IA PC"),
    special: ownEntries({ EEUU: "Estados Unidos", RRHH: "recursos humanos", ONG: "o ene ge" }),
  },
};
