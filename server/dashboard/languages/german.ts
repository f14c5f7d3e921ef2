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
  gone: "Diese Person gibt es nicht mehr; laden Sie die Seite neu.",
  "last-owner":
    "Dies ist der einzige Eigentümer; ernennen Sie erst einen weiteren, der sich schon angemeldet hat.",
  "other-password": "Gerade eben wurde ein anderes Passwort gewählt; melden Sie sich damit an.",
};

const admissionProblems: Record<SignInRefusalReason, string> = {
  "dead-link": accountProblems["dead-link"],
  "other-person": "Sie melden sich bereits unter einem anderen Namen an; dieser Link ist für jemand anderen.",
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
    people: "Personen",
    changes: "Änderungen",
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
    passwordHelp: (shortest) => `Mindestens ${shortest} Zeichen; einige Wörter genügen.`,
    lost: "Passwort vergessen? Ein Eigentümer kann Ihnen einen Link geben, mit dem Sie ein neues wählen.",
    signInAs: (name) => html`Sie melden sich als ${name} an.`,
    nobodyYet: (command) =>
      html`Noch kann sich niemand mit einem Passwort anmelden. Öffnen Sie den Link, den ${command} ausgegeben hat: Damit wird der erste Eigentümer angelegt.`,
    elsewhere: (link, setting) =>
      html`Andernfalls lautet der Link ${link} mit dem Text der Datei, die in ${setting} steht.`,
    wrong: "Der Name oder das Passwort ist falsch.",
    wrongLink: "Dies ist nicht der Link, den der Server erzeugt hat; öffnen Sie den richtigen noch einmal.",
    deadLink:
      "Dieser Link wurde bereits benutzt oder ist abgelaufen. Bitten Sie einen Eigentümer um einen neuen.",
    passwordLength: (shortest, longest, given) =>
      `Ein Passwort hat ${shortest} bis ${longest} Zeichen; dieses hat ${given}.`,
    passwordIsName: "Das Passwort besteht fast nur aus dem Namen; wählen Sie ein anderes.",
    passwordRepeats: "Das Passwort besteht aus Wiederholungen; wählen Sie ein anderes.",
    manySignIns: "Gerade melden sich viele Personen gleichzeitig an; versuchen Sie es gleich noch einmal.",
    manyTries: (minutes) =>
      `Zu viele Versuche; warten Sie ${minutes === 1 ? "eine Minute" : `${minutes} Minuten`} und versuchen Sie es noch einmal.`,
  },
  account: {
    title: "Ihr Konto",
    sessions: "Sitzungen",
    caption:
      "Wo Sie angemeldet sind. Zeiten in UTC. Eine Sitzung endet, wenn sie einen Tag lang nicht benutzt wurde, und nach einer Woche.",
    begun: "Angemeldet",
    seen: "Zuletzt benutzt",
    ending: "Beenden",
    thisOne: "diese hier",
    end: (begun) => `Sitzung vom ${begun} beenden`,
    endOthers: "Alle anderen beenden",
    password: "Passwort",
    byProvider: "Sie melden sich über den Anbieter an; hier gibt es kein Passwort.",
    current: "Bisheriges Passwort",
    next: "Neues Passwort",
    change: "Passwort ändern",
    changeHelp: "Ihre anderen Sitzungen werden dadurch beendet.",
    changed: "Das Passwort ist geändert, und Ihre anderen Sitzungen sind beendet.",
    wrong: "Das bisherige Passwort ist falsch.",
  },
  provider: {
    notBegunHere:
      "Diese Anmeldung wurde nicht in diesem Browser begonnen, ist schon abgeschlossen oder hat länger als zehn Minuten gedauert; beginnen Sie noch einmal.",
    openLink: "Öffnen Sie den Link, den Sie erhalten haben, und wählen Sie dort, wie Sie sich anmelden.",
    otherIssuer: (provider) =>
      `Die Antwort von ${provider} stammt von einem anderen Aussteller; beginnen Sie noch einmal.`,
    lacksSecret: (provider) =>
      `Um ${provider} zu erreichen, fehlt diesem Server das Geheimnis des Clients. Fragen Sie, wer den Server betreibt.`,
    lacksAuthority: (provider) =>
      `Um ${provider} zu erreichen, fehlt diesem Server das Zertifikat der Zertifizierungsstelle. Fragen Sie, wer den Server betreibt.`,
    ended: (provider, reason) => `${provider} hat die Anmeldung beendet: ${reason}.`,
    unreachable: (provider) =>
      `${provider} ist gerade nicht erreichbar; versuchen Sie es gleich noch einmal.`,
    late: "Diese Anmeldung hat zu lange gedauert oder wurde bereits verwendet; beginnen Sie noch einmal.",
    unknownServer: (provider, reason) =>
      `${provider} kennt diesen Server nicht (${reason}). Wer den Server betreibt, muss Kennung, Geheimnis und Rücksprungadresse des Clients prüfen.`,
    notAProvider: (provider) =>
      `${provider} antwortet nicht so, wie es sein Aussteller sollte; fragen Sie, wer ihn betreibt.`,
    unfitting: (provider) =>
      `Die Antwort von ${provider} passt nicht zu dieser Anmeldung; beginnen Sie noch einmal.`,
    refused: ({ problem }) => admissionProblems[problem],
  },
  keys: {
    title: "API-Schlüssel",
    made: (name) => `Der Schlüssel ${name} ist angelegt.`,
    rotated: (name, end) =>
      html`Der Schlüssel ${name} hat jetzt dieses neue Geheimnis. Das bisherige gilt bis ${end} UTC.`,
    copyNow: "Kopieren Sie das Geheimnis jetzt: Es wird nicht noch einmal angezeigt.",
    tryIt: "Im Terminal ausprobieren",
    none: "Es gibt noch keine Schlüssel.",
    caption: "Zeiten in UTC. Ein widerrufener Schlüssel wird innerhalb von 5 Sekunden überall abgewiesen.",
    name: "Name",
    team: "Team",
    may: "Darf",
    limits: "Grenzen",
    secrets: "Geheimnisse (Hashwerte)",
    lastUsed: "Zuletzt verwendet",
    use: "Nutzung",
    change: "Ändern",
    scopes: {
      "tts:write": "sprechen lassen",
      "oov:read": "unbekannte Wörter lesen",
      admin: "Schlüssel verwalten",
    },
    noEnd: "unbefristet",
    ends: (time) => html`gilt bis ${time}`,
    serverLimits: "die des Servers",
    perMinute: (count) => `${count} pro Minute`,
    atOnce: (count) => `${count} gleichzeitig`,
    today: (count) => `${count} heute`,
    lastDays: (days) => `Die letzten ${days} Tage`,
    day: "Tag",
    requests: "Anfragen",
    failed: "Fehlgeschlagen",
    audio: "Audio, s",
    changeKey: (name) => `${name} ändern`,
    overlap: "Stunden, die das bisherige Geheimnis noch gilt",
    rotate: "Geheimnis erneuern",
    revoke: "Jetzt widerrufen",
    makeKey: "Neuer Schlüssel",
    nameHelp: "Wer oder was ihn verwendet.",
    teamHelp: "Mit wem er unbekannte Wörter teilt; darf leer bleiben.",
    endsOn: "Gilt bis",
    endsOnHelp: "Unbefristet, wenn das Feld leer bleibt.",
    requestsPerMinute: "Anfragen pro Minute",
    streams: "Gleichzeitige Ausgaben",
    limitHelp: "Die Grenze des Servers, wenn das Feld leer bleibt.",
    make: "Schlüssel anlegen",
    wrongField: wrongField(keyRules),
  },
  playground: {
    title: "Sprechprobe",
    model: "Modell",
    language: "Sprache",
    everyLanguage: "alle",
    voice: "Stimme",
    voiceOf: (id, gender, language, engine) =>
      `${id} (${[genders[gender], language, engine].filter(Boolean).join(", ")})`,
    sample: "Hörprobe abspielen",
    text: "Text",
    speak: "Sprechen",
    stop: "Anhalten",
    waveform: "Lautstärke der Sprachausgabe",
    litWords: "Wörter, die beim Sprechen hervorgehoben werden",
    options: "Optionen",
    speed: "Geschwindigkeit (speedAlpha)",
    speedHelp: "mist: unter 1 ist schneller; arcana: über 1 ist schneller.",
    rate: "Abtastrate, Hz",
    rateHelp: "Die des Modells, wenn das Feld leer bleibt.",
    mist: "mist und mistv2",
    plainNumbers: "Zahlen so sprechen, wie sie geschrieben sind",
    pauses: "<N> ist eine Pause von N Millisekunden",
    phonemes: "{Lautschrift} in geschweiften Klammern",
    keepWords: "beim Herunterladen unbekannte Wörter zur Durchsicht speichern",
    inlineSpeeds: "Geschwindigkeiten für [Wörter] in eckigen Klammern",
    takeAlong: "Zum Mitnehmen",
    format: "Dateiformat",
    download: "Herunterladen",
    asCode: "Als Programmcode",
    copy: "Kopieren",
    code: "Die Anfrage als Programmcode",
    live: "Beim Tippen zuhören",
    liveText: "Text, der beim Tippen gesprochen wird",
    liveHelp:
      "Jeder Satz wird gesprochen, sobald er vollständig ist, mit der Stimme und den Einstellungen von oben. Die Eingabetaste oder eine Pause spricht auch Unvollständiges.",
    interrupt: "Unterbrechen",
    liveWords: "Wörter, die beim Tippen gesprochen wurden",
    before: "Bisher in diesem Browser gesprochen",
    forget: "Alles vergessen",
    needsScripts: "Diese Seite benötigt JavaScript, das Ihr Browser nicht ausführt.",
    refused: ({ fields }) => fields.map(wrongField(speechRuleMessages)).join(" "),
  },
  client: {
    length: "{length} von {limit} Zeichen",
    tooLong:
      "Im Dashboard darf der Text mit {model} {limit} Zeichen haben und hat {length}; teilen Sie ihn auf oder senden Sie ihn über die API.",
    speaking: "Wird gesprochen …",
    firstAudio: "Erster Ton nach {ms} ms.",
    spoken: "Erster Ton nach {ms} ms; {seconds} s Sprache in {whole} ms.",
    making: "Die Datei wird erzeugt …",
    made: "{file} mit {rate} Hz.",
    copied: "Kopiert.",
    seconds: "{seconds} s",
    answered: "Der Server hat mit {status} geantwortet.",
    brokeOff: "Die Sprachausgabe ist abgebrochen; versuchen Sie es noch einmal.",
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
      html`Nichts durchzusehen. Wörter, die in keinem Wörterbuch stehen, erscheinen hier innerhalb einer Minute nach einer Anfrage mit ${field}.`,
    met: (language, count, shown, first, last) =>
      html`${language}; ${count === 1 ? "einmal" : `${shown}-mal`} vorgekommen, von ${first} bis ${last} UTC`,
    dismiss: (word) => `${word} verwerfen`,
    how: (alphabet, field) => html`Wie werden diese Wörter ausgesprochen? ${alphabet} ist das von ${field}.`,
    alphabet: "Das Lautalphabet",
    sentences: "Sätze",
    sentencesKept: (longest) =>
      `Zu jedem Wort wird der Satz gespeichert, in dem es vorkam, bis zu ${longest} Zeichen.`,
    sentencesNotKept: "Wörter werden ohne die Sätze gespeichert, in denen sie vorkamen.",
    keepSentences: "Sätze mitspeichern",
    forgetSentences: "Keine Sätze speichern und die gespeicherten löschen",
    say: (word) => `Aussprache von ${word}`,
    listen: (word) => `${word} anhören`,
    save: (word) => `${word} speichern`,
    removeWord: (word) => `${word} entfernen`,
    lexicon: "Wörterbuch",
    empty: (one, other) =>
      html`Noch leer. Was hier gespeichert wird, sprechen ${one} und ${other} innerhalb von 5 Sekunden, für jeden Schlüssel des Teams.`,
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
    noSuchLanguage: "Diese Sprache spricht keine der Stimmen.",
    wordRule: "Ein Wort hat 1 bis 60 Buchstaben, mit Bindestrichen und Apostrophen dazwischen.",
    longSounds: (most) => `Eine Aussprache hat höchstens ${most} Zeichen.`,
    unreadable: (written, after, problem) =>
      `Die Aussprache {${written}} ist nach ${after} nicht lesbar: ${phonemesProblems[problem]}.`,
    refused: ({ most }) => `Ein Wörterbuch hat höchstens ${most} Wörter; entfernen Sie zuerst einige.`,
  },
  files: {
    title: "Dateien",
    asPls: (link) => html`Als ${link}, je Sprache eine Datei.`,
    soundsIn: "Laute in",
    alphabets: {
      ipa: "Internationales Phonetisches Alphabet, für andere Programme",
      "x-svc-tts": "dem Lautalphabet dieser Seite, genau wie geschrieben",
    },
    export: "Exportieren",
    fileToImport: "Zu importierende Datei",
    importHelp:
      "Alles oder, wenn etwas nicht stimmt, nichts; ein vorhandenes Wort erhält die Aussprache aus der Datei.",
    import: "Importieren",
    imported: (count, shown) =>
      count === 1 ? "Ein Wort wurde übernommen." : `${shown} Wörter wurden übernommen.`,
    nothingTaken: "Es wurde nichts übernommen. In der Datei:",
    line: (line, problem) => `Zeile ${line}: ${problem}`,
    more: (count) => `Und ${count} weitere.`,
    back: "Zurück zu den Wörtern",
    problem: plsFaultMessages,
    alphabetRule: (names) => `Als Alphabet ist nur ${names.join(" oder ")} erlaubt.`,
    large: (most) => `Die Datei ist größer als ${most}; senden Sie eine mit höchstens ${most}.`,
    oneFile: "Es ist mehr als eine Datei; senden Sie eine nach der anderen.",
    manyFields:
      "Das Formular hat mehr Felder als das dieser Seite; laden Sie die Seite neu und senden Sie es von dort.",
    unreadable: "Das Formular ist nicht lesbar; senden Sie die Datei noch einmal.",
    noFile: "Die Datei fehlt oder ist leer; wählen Sie eine aus.",
  },
  usage: {
    title: "Nutzung",
    spoken: "Gesprochen",
    byDay: "Nach Tagen",
    byKey: "Nach Schlüsseln",
    byVoice: "Nach Stimmen",
    day: "Tag",
    key: "Schlüssel",
    team: "Team",
    model: "Modell",
    voice: "Stimme",
    csv: "Als CSV herunterladen",
    csvRows: ": eine Zeile je Tag, Schlüssel und Stimme, der neueste Tag zuerst",
    csvCut: (most, rows) => `die neuesten ${most} von ${rows} Zeilen`,
    csvWhy: ", da mehr für eine Datei zu viele sind",
    note: "Anfragen, die gesprochen werden sollten. Tage in UTC. „Erster Ton“ ist die Zeit von einer gestreamten Anfrage bis zum ersten Ton. Wird alle 5 Sekunden geschrieben.",
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
    speechEnds: (end) => html`; gesprochen wird bis ${end} UTC`,
    licenseWhy: licenseMessages,
    models: "Modelle, wie das Replikat sie sieht, das diese Seite erzeugt hat",
    state: "Zustand",
    reachable: "erreichbar",
    notReachable: "nicht erreichbar",
    days: "Zeitraum",
    lastDays: (days) => `die letzten ${days} Tage`,
    plot: (first, last, most) => `Anfragen pro Tag vom ${first} bis zum ${last}, höchstens ${most}`,
    failedOnTop: (plot) => `${plot}; oben die fehlgeschlagenen.`,
    nothing: "In dieser Zeit wurde nichts gesprochen.",
    requests: "Anfragen",
    failed: "Fehlgeschlagen",
    characters: "Zeichen",
    audio: "Audio, s",
    firstAudio: "Erster Ton, ms",
    longest: "höchstens, ms",
  },
  people: {
    title: "Personen",
    roles,
    roleMeanings: {
      owner: "sieht und ändert alles",
      member: "legt Schlüssel des Teams an",
      viewer: "sieht die Schlüssel des Teams",
    },
    giveLink: (name) =>
      html`Geben Sie ${name} diesen Link. Er wird nur einmal angezeigt und gilt eine Woche lang oder bis er benutzt wird.`,
    name: "Name",
    role: "Rolle",
    team: "Team",
    hasSignedIn: "Hat sich angemeldet",
    change: "Ändern",
    signsInBy: { password: "mit Passwort", provider: "über den Anbieter", none: "noch nicht" },
    changePerson: (name) => `${name} ändern`,
    newLink: "Neuer Anmeldelink",
    remove: "Entfernen",
    revokeKeys: (names) =>
      `Auch die Schlüssel widerrufen, die diese Person angelegt oder erneuert hat: ${names}`,
    add: "Person hinzufügen",
    teamHelp: "Mitglieder und Betrachter gehören zu einem.",
    addAndLink: "Hinzufügen und Link erzeugen",
    nameRule:
      "Ein Name hat 1 bis 64 Buchstaben, Ziffern und ._@+- und beginnt mit einem Buchstaben oder einer Ziffer; auch eine E-Mail-Adresse geht.",
    teamRule: `Name des Teams: ${plainName}`,
    roleRule: "Die Rolle ist Eigentümer, Mitglied oder Betrachter.",
    needsTeam: (role) => `Zur Rolle ${roles[role]} gehört ein Team; geben Sie es an.`,
    refused: ({ problem }) => accountProblems[problem],
  },
  changes: {
    title: "Änderungen",
    caption: (count) => `Änderungen und Anmeldungen, ${count} je Seite, die neuesten zuerst. Zeiten in UTC.`,
    older: "Ältere Änderungen",
    from: (address) => `von ${address}`,
    when: "Wann",
    who: "Wer",
    what: "Was",
    of: "Woran",
    more: "Näheres",
    actions: {
      "key created": "Schlüssel angelegt",
      "key rotated": "Geheimnis erneuert",
      "key revoked": "Schlüssel widerrufen",
      "person added": "Person hinzugefügt",
      "person changed": "Person geändert",
      "person removed": "Person entfernt",
      "link made": "Link erzeugt",
      "password chosen": "Passwort gewählt",
      "word saved": "Wort gespeichert",
      "words imported": "Wörter importiert",
      "word removed": "Wort entfernt",
      "word dismissed": "Wort verworfen",
      "sentences turned on": "Sätze werden gespeichert",
      "sentences turned off": "Sätze werden nicht mehr gespeichert",
      "sign-in linked": "Anmeldung verknüpft",
      "signed in": "angemeldet",
      "sign-in refused": "Anmeldung abgewiesen",
    },
    commandLine: "die Befehlszeile",
    somebody: "jemand",
    key: (name) => `der Schlüssel ${name}`,
    firstOwner: "der erste Eigentümer",
    byGroup: (role) => `${role}, durch eine Gruppe`,
    scopesOf: (scopes, team) => `${scopes}, Team ${team}`,
    wordCount: (count, shown) => (count === 1 ? "1 Wort" : `${shown} Wörter`),
    by: (provider, reason) => html`über ${provider}${reason}`,
  },
  failures: {
    title: "Das hat nicht geklappt",
    back: "Zurück zum Dashboard",
    said: ({ code }) => failureMessages[code],
    signedOut: failureMessages.unauthorized,
    forRoles: (wanted, role) =>
      `Nur für die Rollen: ${wanted.map((one) => roles[one]).join(", ")}. Ihre Rolle: ${roles[role]}.`,
    otherSite:
      "Dieses Formular kam von einer anderen Website; öffnen Sie das Dashboard selbst und versuchen Sie es noch einmal.",
    earlierSession:
      "Diese Seite stammt aus einer früheren Sitzung; laden Sie sie neu und versuchen Sie es noch einmal.",
    database: "Die Datenbank ist gerade nicht erreichbar; versuchen Sie es gleich noch einmal.",
    language: (names) => `Als Sprache gibt es: ${names.join(", ")}.`,
  },
};
