import type { FieldError } from "../../contract/errors.ts";
import type { AccountProblem, Role } from "../../store/accounts/accounts.ts";
import type { SignInRefusalReason } from "../../store/accounts/identities.ts";
import { html } from "../html/html.ts";
import type { Texts } from "./english.ts";
import {
  failureMessages,
  licenseMessages,
  phonemesProblems,
  plsFaultMessages,
  speechRuleMessages,
} from "./german-problems.ts";

const roles: Record<Role, string> = { owner: "Eigentümer", member: "Mitglied", viewer: "Betrachter" };

const genders = { female: "weiblich", male: "männlich", neutral: "neutral" };

const accountProblems: Record<AccountProblem, string> = {
  taken: "Dieser Name ist bereits vergeben; wählen Sie einen anderen.",
  "set-up": "Das Dashboard hat bereits einen Eigentümer; melden Sie sich an.",
  "dead-link":
    "Dieser Link wurde bereits benutzt oder ist abgelaufen; bitten Sie einen Eigentümer um einen neuen.",
  gone: "Diesen Benutzer gibt es nicht mehr; laden Sie die Seite neu.",
  "last-owner":
    "Dies ist der einzige Eigentümer; fügen Sie zuerst einen weiteren hinzu, der sich angemeldet hat.",
  "other-password": "Gerade eben wurde ein anderes Passwort gewählt; melden Sie sich damit an.",
};

const admissionProblems: Record<SignInRefusalReason, string> = {
  "dead-link": accountProblems["dead-link"],
  "other-person":
    "Sie melden sich bereits unter einem anderen Namen an; dieser Link gehört einem anderen Benutzer.",
  "left-groups": "Sie gehören keiner Gruppe mehr an, die sich hier anmelden darf.",
  "not-invited":
    "Sie wurden nicht eingeladen und gehören keiner Gruppe an, die sich hier anmelden darf. Wenden Sie sich an einen Eigentümer.",
  "no-name": "Der Anbieter nennt keinen Namen von Ihnen, der hier verwendet werden kann.",
  taken:
    "Ihr Name ist hier bereits vergeben. Wenn Sie das selbst sind, bitten Sie einen Eigentümer um einen Link.",
};

const plainName =
  "Erlaubt sind 1 bis 64 Buchstaben, Ziffern, Leerzeichen und ._@:+-; das erste Zeichen ist ein Buchstabe oder eine Ziffer.";
const limitRule =
  "Erlaubt ist eine ganze Zahl von 1 bis 1.000.000; mehr als die Grenze des Servers gibt nur ein Eigentümer.";

const keyRules: Readonly<Record<string, string>> = {
  "/name": plainName,
  "/team": `${plainName} Es muss Ihr eigenes Team sein, wenn Sie kein Eigentümer sind.`,
  "/scopes":
    "Wählen Sie mindestens eine Berechtigung; die Verwaltung von Schlüsseln erteilt nur ein Eigentümer.",
  "/expiresAt": "Das Datum muss in der Zukunft liegen.",
  "/requestsPerMinute": limitRule,
  "/streams": limitRule,
  "/overlapHours": "Erlaubt ist eine ganze Zahl von 0 bis 8784 Stunden.",
};

const wrongField =
  (rules: Readonly<Record<string, string>>) =>
  ({ pointer }: FieldError): string =>
    rules[pointer] ?? failureMessages.invalid_request;

/** All texts of the dashboard in German. */
export const germanTexts: Texts = {
  frame: {
    skip: "Zum Inhalt springen",
    pages: "Seiten",
    signOut: "Abmelden",
    account: "Konto",
    keys: "Schlüssel",
    playground: "Sprechprobe",
    words: "Wörter",
    usage: "Nutzung",
    users: "Benutzer",
    auditLog: "Audit-Protokoll",
    role: (role, team) => (team === undefined ? roles[role] : `${roles[role]}, Team ${team}`),
    show: "Anzeigen",
  },
  signIn: {
    first: "Erste Anmeldung",
    makeOwner: "Eigentümer anlegen",
    signIn: "Anmelden",
    signInWith: (provider) => `Mit ${provider} anmelden`,
    fromNowOnWith: (provider) => `Von jetzt an mit ${provider} anmelden`,
    choosePassword: "Passwort wählen",
    chooseThis: "Dieses Passwort festlegen",
    yourName: "Ihr Name",
    name: "Name",
    password: "Passwort",
    passwordHelp: (shortest) =>
      `Mindestens ${shortest} Zeichen. Ein Satz aus mehreren Wörtern ist ein gutes Passwort.`,
    lost: "Passwort vergessen? Bitten Sie einen Eigentümer um einen neuen Anmeldelink.",
    signInAs: (name) => html`Ihr Benutzername ist ${name}.`,
    nobodyYet: (command) =>
      html`Noch kann sich kein Benutzer mit einem Passwort anmelden. Um den ersten Eigentümer anzulegen, öffnen Sie den Link, den ${command} ausgegeben hat.`,
    elsewhere: (link, setting) =>
      html`In anderen Installationen lautet der Link ${link}; … steht für den Inhalt der Datei, die ${setting} nennt.`,
    wrong: "Der Name oder das Passwort ist falsch.",
    wrongLink: "Dieser Link ist ungültig; öffnen Sie den Link, den der Server erzeugt hat.",
    deadLink:
      "Dieser Link wurde bereits benutzt oder ist abgelaufen. Bitten Sie einen Eigentümer um einen neuen.",
    passwordLength: (shortest, longest, given) =>
      `Ein Passwort muss ${shortest} bis ${longest} Zeichen haben; dieses Passwort hat ${given}.`,
    passwordIsName: "Das Passwort besteht fast nur aus dem Benutzernamen; wählen Sie ein anderes.",
    passwordRepeats: "Das Passwort hat zu wenige verschiedene Zeichen; wählen Sie ein anderes.",
    manySignIns: "Gerade laufen zu viele Anmeldungen; versuchen Sie es gleich noch einmal.",
    manyTries: (minutes) =>
      `Zu viele Versuche; versuchen Sie es in ${minutes === 1 ? "einer Minute" : `${minutes} Minuten`} noch einmal.`,
  },
  account: {
    title: "Ihr Konto",
    sessions: "Sitzungen",
    caption:
      "Ihre offenen Sitzungen. Zeiten in UTC. Eine Sitzung endet nach einem Tag ohne Nutzung und eine Woche nach der Anmeldung.",
    begun: "Angemeldet",
    seen: "Zuletzt benutzt",
    ending: "Sitzung beenden",
    thisOne: "aktuelle Sitzung",
    end: (begun) => `Sitzung vom ${begun} beenden`,
    endOthers: "Alle anderen Sitzungen beenden",
    password: "Passwort",
    byProvider: "Sie melden sich über den Anbieter an; Ihr Konto hat deshalb kein Passwort.",
    current: "Aktuelles Passwort",
    next: "Neues Passwort",
    change: "Passwort ändern",
    changeHelp: "Ihre anderen Sitzungen werden dadurch beendet.",
    changed: "Ihr Passwort wurde geändert, und Ihre anderen Sitzungen sind beendet.",
    wrong: "Das aktuelle Passwort ist falsch.",
  },
  provider: {
    notBegunHere:
      "Diese Anmeldung wurde nicht in diesem Browser begonnen, ist schon abgeschlossen oder hat länger als zehn Minuten gedauert; beginnen Sie noch einmal.",
    openLink: "Öffnen Sie Ihren Einladungslink, und wählen Sie auf dieser Seite die Art der Anmeldung.",
    otherIssuer: (provider) =>
      `Die Antwort von ${provider} stammt von einem anderen Aussteller; beginnen Sie noch einmal.`,
    lacksSecret: (provider) =>
      `Auf diesem Server fehlt das Client-Geheimnis für ${provider}. Wenden Sie sich an den Administrator des Servers.`,
    lacksAuthority: (provider) =>
      `Auf diesem Server fehlt das Zertifikat der Zertifizierungsstelle von ${provider}. Wenden Sie sich an den Administrator des Servers.`,
    ended: (provider, reason) => `${provider} hat die Anmeldung abgelehnt: ${reason}.`,
    unreachable: (provider) =>
      `${provider} ist gerade nicht erreichbar; versuchen Sie es gleich noch einmal.`,
    late: "Diese Anmeldung hat zu lange gedauert oder wurde bereits verwendet; beginnen Sie noch einmal.",
    unknownServer: (provider, reason) =>
      `${provider} kennt diesen Server nicht (${reason}). Der Administrator des Servers muss Client-ID, Client-Geheimnis und Redirect-URI prüfen.`,
    notAProvider: (provider) =>
      `${provider} hat ungültig geantwortet; wenden Sie sich an den Administrator von ${provider}.`,
    unfitting: (provider) =>
      `Die Antwort von ${provider} passt nicht zu dieser Anmeldung; beginnen Sie noch einmal.`,
    refused: ({ problem }) => admissionProblems[problem],
  },
  keys: {
    title: "API-Schlüssel",
    made: (name) => `Der Schlüssel ${name} ist angelegt.`,
    rotated: (name, end) =>
      html`Der Schlüssel ${name} hat ein neues Geheimnis. Das bisherige Geheimnis gilt bis ${end} UTC.`,
    copyNow: "Kopieren Sie das Geheimnis jetzt. Es wird nicht noch einmal angezeigt.",
    tryIt: "Im Terminal ausprobieren",
    none: "Es gibt noch keine Schlüssel.",
    caption: "Zeiten in UTC. Alle Replikate lehnen einen widerrufenen Schlüssel innerhalb von 5 Sekunden ab.",
    name: "Name",
    team: "Team",
    may: "Berechtigungen",
    limits: "Grenzen",
    secrets: "Geheimnisse (Hashwerte)",
    lastUsed: "Zuletzt verwendet",
    use: "Nutzung",
    change: "Ändern",
    scopes: {
      "tts:write": "Sprache erzeugen",
      "oov:read": "unbekannte Wörter lesen",
      admin: "Schlüssel verwalten",
    },
    noEnd: "unbefristet",
    ends: (time) => html`gilt bis ${time}`,
    serverLimits: "Vorgabe des Servers",
    perMinute: (count) => `${count} Anfragen pro Minute`,
    atOnce: (count) => `${count} gleichzeitige Ausgaben`,
    today: (count) => `${count} heute`,
    lastDays: (days) => `Die letzten ${days} Tage`,
    day: "Tag",
    requests: "Anfragen",
    failed: "Fehlgeschlagen",
    audio: "Audio (s)",
    changeKey: (name) => `${name} ändern`,
    overlap: "Stunden, für die das bisherige Geheimnis gültig bleibt",
    rotate: "Geheimnis erneuern",
    revoke: "Jetzt widerrufen",
    makeKey: "Neuer Schlüssel",
    nameHelp: "Der Benutzer oder das Programm, das den Schlüssel verwendet.",
    teamHelp: "Das Team, mit dem der Schlüssel seine Wörter teilt. Optional.",
    endsOn: "Gültig bis",
    endsOnHelp: "Unbefristet, wenn das Feld leer bleibt.",
    requestsPerMinute: "Anfragen pro Minute",
    streams: "Gleichzeitige Ausgaben",
    limitHelp: "Die Grenze des Servers, wenn das Feld leer bleibt.",
    make: "Schlüssel anlegen",
    nameTaken: (name) =>
      `${name} ist bereits vergeben; jeder Name gilt in allen Teams nur einmal. Wählen Sie einen anderen.`,
    wrongField: wrongField(keyRules),
  },
  playground: {
    title: "Sprechprobe",
    model: "Modell",
    language: "Sprache",
    everyLanguage: "alle Sprachen",
    voice: "Stimme",
    voiceOf: (id, gender, language, engine) =>
      `${id} (${[genders[gender], language, engine].filter(Boolean).join(", ")})`,
    sample: "Hörprobe abspielen",
    text: "Text",
    speak: "Sprechen",
    stop: "Anhalten",
    waveform: "Lautstärke der Sprachausgabe",
    litWords: "Wörter, die bei der Wiedergabe hervorgehoben werden",
    options: "Optionen",
    speed: "Geschwindigkeit (speedAlpha)",
    speedHelp: "mist: unter 1 ist schneller. arcana: über 1 ist schneller.",
    rate: "Abtastrate, Hz",
    rateHelp: "Die Vorgabe des Modells, wenn das Feld leer bleibt.",
    mist: "mist und mistv2",
    plainNumbers: "Zahlen, Datumsangaben und Abkürzungen nicht ausschreiben",
    pauses: "<N> ist eine Pause von N Millisekunden",
    phonemes: "{Lautschrift} in geschweiften Klammern ist eine Aussprache",
    keepWords: "unbekannte Wörter zur Durchsicht speichern (nur beim Herunterladen)",
    inlineSpeeds: "Geschwindigkeiten für [Wörter] in eckigen Klammern",
    takeAlong: "Exportieren",
    format: "Dateiformat",
    download: "Herunterladen",
    asCode: "Als Programmcode",
    copy: "Kopieren",
    code: "Die Anfrage als Programmcode",
    live: "Beim Tippen zuhören",
    liveText: "Text, der beim Tippen gesprochen wird",
    liveHelp:
      "Jeder Satz wird gesprochen, sobald er vollständig ist, mit der Stimme und den Einstellungen von oben. Einen unvollständigen Satz hören Sie, wenn Sie die Eingabetaste drücken oder nicht weitertippen.",
    interrupt: "Unterbrechen",
    liveWords: "Wörter, die beim Tippen gesprochen wurden",
    before: "Zuletzt verwendet",
    forget: "Liste leeren",
    needsScripts: "Diese Seite benötigt JavaScript; aktivieren Sie JavaScript in Ihrem Browser.",
    refused: ({ fields }) => fields.map(wrongField(speechRuleMessages)).join(" "),
  },
  client: {
    length: "{length} von {limit} Zeichen",
    tooLong:
      "Der Text hat {length} Zeichen; im Dashboard sind mit {model} höchstens {limit} erlaubt. Teilen Sie den Text auf, oder senden Sie den Text über die API.",
    speaking: "Sprache wird erzeugt …",
    firstAudio: "Erster Ton nach {ms} ms.",
    spoken: "Erster Ton nach {ms} ms; {seconds} s Sprache in {whole} ms.",
    making: "Die Datei wird erzeugt …",
    made: "{file} mit {rate} Hz.",
    copied: "Kopiert.",
    seconds: "{seconds} s",
    answered: "Der Server hat mit dem Status {status} geantwortet.",
    brokeOff: "Die Sprachausgabe wurde unterbrochen; versuchen Sie es noch einmal.",
    unreachable: "Der Server ist nicht erreichbar; versuchen Sie es gleich noch einmal.",
    liveFirstAudio: "Erster Ton {ms} ms nach dem Satz.",
    interrupted: "Unterbrochen.",
    liveClosed: "Der Server hat die Verbindung beendet; tippen Sie weiter, um sie neu aufzubauen.",
  },
  words: {
    title: "Unbekannte Wörter",
    noTeam: "Schlüssel ohne Team",
    team: "Team",
    nothing: (field) =>
      html`Keine Wörter zur Durchsicht. Unbekannte Wörter erscheinen hier innerhalb einer Minute nach einer Anfrage mit ${field}.`,
    met: (language, _count, shown, first, last) =>
      html`${language}; ${shown} Vorkommen, von ${first} bis ${last} UTC`,
    dismiss: (word) => `${word} verwerfen`,
    how: (alphabet, field) =>
      html`Geben Sie die Aussprache jedes Worts ein. ${alphabet} ist das der Option ${field}.`,
    alphabet: "Das Lautalphabet",
    sentences: "Sätze",
    sentencesKept: (longest) =>
      `Zu jedem Wort wird der Satz gespeichert, in dem es vorkam, mit höchstens ${longest} Zeichen.`,
    sentencesNotKept: "Wörter werden ohne die Sätze gespeichert, in denen sie vorkamen.",
    keepSentences: "Sätze speichern",
    forgetSentences: "Keine Sätze mehr speichern und gespeicherte Sätze löschen",
    say: (word) => `Aussprache von ${word}`,
    listen: (word) => `${word} anhören`,
    save: (word) => `${word} speichern`,
    removeWord: (word) => `${word} entfernen`,
    lexicon: "Wörterbuch",
    empty: (one, other) =>
      html`Das Wörterbuch ist leer. Eine gespeicherte Aussprache gilt innerhalb von 5 Sekunden für ${one} und ${other}, mit jedem Schlüssel des Teams.`,
    word: "Wort",
    language: "Sprache",
    saidAs: "Aussprache",
    remove: "Entfernen",
    addWord: "Wort hinzufügen",
    add: "Hinzufügen",
    stress: (example) =>
      html`0, 1 oder 2 vor einem Vokal bedeutet unbetont, Hauptton oder Nebenton: ${example} ist das englische custom.`,
    sounds: "Laute",
    asIn: "Wie in den englischen Wörtern",
    noSuchLanguage: "Keine Stimme spricht diese Sprache; wählen Sie eine Sprache aus der Liste.",
    wordRule:
      "Ein Wort muss 1 bis 60 Buchstaben haben; zwischen Buchstaben sind Bindestriche und Apostrophe erlaubt.",
    longSounds: (most) => `Eine Aussprache darf höchstens ${most} Zeichen haben.`,
    unreadable: (written, after, problem) =>
      `Die Aussprache {${written}} ist nach ${after} ungültig: ${phonemesProblems[problem]}.`,
    refused: ({ most }) =>
      `Ein Wörterbuch darf höchstens ${most} Wörter haben; entfernen Sie zuerst einige Wörter.`,
  },
  files: {
    title: "Dateien",
    asPls: (link) => html`Dateien haben das Format ${link}. Jede Datei enthält eine Sprache.`,
    soundsIn: "Lautalphabet",
    alphabets: {
      ipa: "Internationales Phonetisches Alphabet, für andere Programme",
      "x-svc-tts": "Lautalphabet dieser Seite, ohne Umwandlung",
    },
    export: "Exportieren",
    fileToImport: "Zu importierende Datei",
    importHelp:
      "Wenn die Datei einen Fehler enthält, wird nichts importiert. Die Aussprachen der Datei ersetzen vorhandene.",
    import: "Importieren",
    imported: (count, shown) =>
      count === 1 ? "Ein Wort wurde importiert." : `${shown} Wörter wurden importiert.`,
    nothingTaken: "Es wurde nichts importiert. Fehler in der Datei:",
    line: (line, problem) => `Zeile ${line}: ${problem}`,
    more: (count) => `Und ${count} weitere.`,
    back: "Zurück zu den Wörtern",
    problem: plsFaultMessages,
    alphabetRule: (names) => `Als Alphabet ist nur ${names.join(" oder ")} erlaubt.`,
    large: (most) => `Die Datei ist größer als ${most}; teilen Sie die Datei in kleinere Dateien auf.`,
    oneFile: "Das Formular enthält mehr als eine Datei; senden Sie die Dateien einzeln.",
    manyFields:
      "Das Formular hat mehr Felder als diese Seite; laden Sie die Seite neu, und senden Sie das Formular noch einmal.",
    unreadable: "Das Formular ist nicht lesbar; senden Sie die Datei noch einmal.",
    noFile: "Die Datei fehlt oder ist leer; wählen Sie eine aus.",
  },
  usage: {
    title: "Nutzung",
    spoken: "Sprachausgabe",
    byDay: "Nach Tag",
    byKey: "Nach Schlüssel",
    byVoice: "Nach Stimme",
    day: "Tag",
    key: "Schlüssel",
    team: "Team",
    model: "Modell",
    voice: "Stimme",
    csv: "Als CSV herunterladen",
    csvRows: ": eine Zeile je Tag, Schlüssel und Stimme, der neueste Tag zuerst",
    csvCut: (most, rows) => `die neuesten ${most} von ${rows} Zeilen`,
    csvWhy: ", weil eine Datei höchstens so viele Zeilen hat",
    note: "Gültige Anfragen zur Sprachausgabe. Die Tage beginnen um 0 Uhr UTC. „Erster Ton“ ist die Zeit von einer gestreamten Anfrage bis zum ersten Ton. Die Werte werden alle 5 Sekunden aktualisiert.",
    health: "Zustand",
    license: "Lizenz",
    licenseStates: {
      valid: "gültig",
      grace: "Übergangsfrist",
      expired: "abgelaufen",
      invalid: "ungültig",
      missing: "nicht vorhanden",
      not_required: "nicht erforderlich",
    },
    licenseUntil: (end) => html`, bis ${end} UTC`,
    speechEnds: (end) => html`; die Sprachausgabe endet ${end} UTC`,
    licenseWhy: licenseMessages,
    models: "Modelle, aus der Sicht des Replikats, das diese Seite erzeugt hat",
    state: "Zustand",
    reachable: "erreichbar",
    notReachable: "nicht erreichbar",
    days: "Zeitraum",
    lastDays: (days) => `die letzten ${days} Tage`,
    plot: (first, last, most) => `Anfragen pro Tag vom ${first} bis zum ${last}, höchstens ${most}`,
    failedOnTop: (plot) => `${plot}. Fehlgeschlagene Anfragen stehen oben.`,
    nothing: "In diesem Zeitraum gab es keine Anfragen.",
    requests: "Anfragen",
    failed: "Fehlgeschlagen",
    characters: "Zeichen",
    audio: "Audio (s)",
    firstAudio: "Erster Ton (ms)",
    longest: "Längster erster Ton (ms)",
  },
  users: {
    title: "Benutzer",
    roles,
    roleMeanings: {
      owner: "sieht und ändert alles",
      member: "legt Schlüssel des Teams an",
      viewer: "sieht die Schlüssel des Teams",
    },
    giveLink: (name) =>
      html`Senden Sie diesen Link an ${name}. Er wird nur einmal angezeigt und gilt eine Woche lang oder bis er benutzt wird.`,
    name: "Name",
    role: "Rolle",
    team: "Team",
    hasSignedIn: "Anmeldung",
    change: "Ändern",
    signsInBy: { password: "mit Passwort", provider: "über den Anbieter", none: "noch nicht" },
    changePerson: (name) => `${name} ändern`,
    newLink: "Neuer Anmeldelink",
    remove: "Entfernen",
    revokeKeys: (names) =>
      `Auch die Schlüssel widerrufen, die dieser Benutzer angelegt oder erneuert hat: ${names}`,
    add: "Neuer Benutzer",
    teamHelp: "Für Mitglieder und Betrachter erforderlich.",
    addAndLink: "Benutzer hinzufügen und Link erzeugen",
    nameRule:
      "Ein Name muss 1 bis 64 Buchstaben, Ziffern und ._@+- haben und mit einem Buchstaben oder einer Ziffer beginnen. Eine E-Mail-Adresse ist erlaubt.",
    teamRule: `Name des Teams: ${plainName}`,
    roleRule: "Die Rolle muss Eigentümer, Mitglied oder Betrachter sein.",
    needsTeam: (role) => `Die Rolle ${roles[role]} erfordert ein Team; geben Sie das Team an.`,
    refused: ({ problem }) => accountProblems[problem],
  },
  auditLog: {
    title: "Audit-Protokoll",
    caption: (count) => `Anmeldungen und Änderungen, ${count} je Seite, die neuesten zuerst. Zeiten in UTC.`,
    older: "Ältere Einträge",
    from: (address) => `von ${address}`,
    when: "Zeit",
    who: "Akteur",
    what: "Aktion",
    of: "Objekt",
    more: "Details",
    actions: {
      "key created": "Schlüssel angelegt",
      "key rotated": "Geheimnis erneuert",
      "key revoked": "Schlüssel widerrufen",
      "person added": "Benutzer hinzugefügt",
      "person changed": "Benutzer geändert",
      "person removed": "Benutzer entfernt",
      "link made": "Link erzeugt",
      "password chosen": "Passwort festgelegt",
      "word saved": "Wort gespeichert",
      "words imported": "Wörter importiert",
      "word removed": "Wort entfernt",
      "word dismissed": "Wort verworfen",
      "sentences turned on": "Sätze werden gespeichert",
      "sentences turned off": "Sätze werden nicht mehr gespeichert",
      "sign-in linked": "Anmeldung verknüpft",
      "signed in": "angemeldet",
      "sign-in refused": "Anmeldung abgelehnt",
    },
    commandLine: "die Befehlszeile",
    unknownUser: "unbekannter Benutzer",
    key: (name) => `der Schlüssel ${name}`,
    firstOwner: "der erste Eigentümer",
    byGroup: (role) => `${role}, durch eine Gruppe`,
    scopesOf: (scopes, team) => `${scopes}, Team ${team}`,
    wordCount: (count, shown) => (count === 1 ? "1 Wort" : `${shown} Wörter`),
    by: (provider, reason) => html`über ${provider}${reason}`,
  },
  failures: {
    title: "Die Anfrage ist fehlgeschlagen",
    back: "Zurück zum Dashboard",
    describe: ({ code }) => failureMessages[code],
    signedOut: failureMessages.unauthorized,
    forRoles: (allowed, role) =>
      `Diese Seite erfordert die Rolle ${allowed.map((one) => roles[one]).join(" oder ")}; Ihre Rolle ist ${roles[role]}.`,
    otherSite:
      "Eine andere Website hat dieses Formular gesendet; öffnen Sie das Dashboard, und versuchen Sie es noch einmal.",
    earlierSession:
      "Diese Seite stammt aus einer früheren Sitzung; laden Sie die Seite neu, und wiederholen Sie die Aktion.",
    database: "Die Datenbank ist nicht erreichbar; versuchen Sie es gleich noch einmal.",
    language: (names) => `Die Sprache muss eine der folgenden sein: ${names.join(", ")}.`,
  },
};
