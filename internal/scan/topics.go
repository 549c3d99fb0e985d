package scan

import "strings"

// topic is a set of subjects that words of a text are about. The rules about
// prose in [sentenceRules] combine topics instead of words, so that they find
// the same attack in every language of the table.
type topic uint64

const (
	downloads   topic = 1 << iota // to download
	runs                          // to run, open or install
	archives                      // an archive
	programs                      // a program or installer
	passwords                     // a password
	terminals                     // a terminal or run dialog
	pastes                        // to copy or paste
	commands                      // a command
	protections                   // protection of the system
	disables                      // to disable or ignore
	requires                      // required or urgent
	hides                         // to keep something from the user
	sends                         // to send or attach
	agentFiles                    // files from which agents take instructions
	talks                         // the conversation
	keyFiles                      // files with credentials
	keyWords                      // credentials
	ignores                       // to ignore or forget
	limits                        // instructions or restrictions
	settings                      // settings that approve tools
	always                        // each time, first
	outside                       // the address of a host that is not well known
	foreignFile                   // the address of a program or archive there
	pasteSite                     // the address of a page that anyone can write
	obeys                         // to do what a text says
	approves                      // approval that is claimed or not needed
	seeds                         // secrets of a wallet or account
	asks                          // to ask the user for something
	urges                         // a deadline or danger
	agents                        // the agent that reads the text
	conceals                      // a comment or element that is not displayed
	negations                     // not, before a word about telling
	tells                         // to tell or show something
	decodes                       // to decode text
	negates                       // never to do something
	warns                         // words of texts about attacks
)

// topicWords lists the words of each topic. A word ends with an asterisk if
// other endings count too. Words of languages that write no spaces match
// anywhere.
var topicWords = []struct {
	topic topic
	words string
}{
	{downloads, "download*|downloaden|fetch the|grab the|grab it|get it from|get the file|herunterlad*|herunterzulad*|runterlad*|lade|laden|télécharg*|descarg*|baixe|baixar|baixa|scaric*|pobierz|indir|скача*|загрузи*|загрузить|下载|下載|ダウンロード|다운로드|내려받"},
	{runs, "run|runs|running|execute*|launch*|double-click*|double click*|open|start|install|install it|right-click|ausführ*|auszuführen|starte*|öffne*|installier*|führe|führen|doppelklick*|lance*|lancer|exécut*|ouvr*|installe*|démarre*|ejecut*|abre|abra|abrir|inicia*|instal*|esegu*|avvia*|apri|aprire|запуст*|запуск*|откро*|выполни*|установи*|运行|執行|执行|打开|启动|双击|安装|開啟|安裝|実行|起動|開い|開く|開き|インストール|실행|열어|열고|설치"},
	{archives, "zip|.zip|.7z|.rar|archive|7z|rar|extract|unzip|unpack|archiv|entpack*|extraire|extrais|extraye|extraer|descomprim*|extraia|descompact*|estrai*|архив*|распак*|压缩包|解压*|压缩文件|壓縮|圧縮|解凍|展開|압축"},
	{programs, ".exe|.msi|.dmg|.pkg|.scr|.bat|.appimage|.command|installer|executable|setup.exe|helper app|one-line installer|安装包|安装程序|客户端|インストーラ|설치 파일|установщик*|instalador|installateur|installationsprogramm"},
	{passwords, "password|passcode|passphrase|pass:|pw:|pwd:|passwort|kennwort|mot de passe|contraseña|clave|senha|парол*|密码|密碼|口令|解压码|パスワード|비밀번호|암호"},
	{terminals, "terminal|terminal.app|command prompt|powershell|cmd.exe|run dialog|run box|win+r|win + r|windows + r|windows+r|⊞|shell|konsole|eingabeaufforderung|invite de commande*|símbolo del sistema|línea de comandos|prompt dei comandi|терминал*|консол*|командн* строк*|终端|命令行|命令提示符|終端|ターミナル|コマンドプロンプト|터미널|명령 프롬프트"},
	{pastes, "paste|pastes|copy|copy-paste|einfüg*|einzufügen|kopier*|füge|coll*|copie*|pega*|copia*|cole|colar|incolla*|встав*|скопиру*|粘贴|复制|貼上|複製|貼り付け|コピー|ペースト|붙여넣|복사"},
	{commands, "一行|command|commands|one-liner|oneliner|one-line|snippet|line below|following line|befehl*|zeile|einzeiler|commande|ligne|comando|línea|linha|команд*|строк*|命令|代码|指令|コマンド|명령"},
	{protections, "検証できません|悪質なソフトウェア|无法验证开发者|spctl|xattr|com.apple.quarantine|mppreference|disablerealtimemonitoring|gatekeeper|smartscreen|antivirus*|anti-virus|anti-malware|defender|real-time protection|realtime protection|security software|endpoint protection|csrutil|setenforce|quarantine|security warning|firewall|virenscann*|virenschutz*|quarantäne|quarantaine|pare-feu|avertissement de sécurité|cuarentena|cortafuegos|quarentena|антивирус*|защит*|карантин*|брандмауэр*|杀毒|防病毒|安全软件|杀软|防火墙|实时保护|安全中心|ウイルス対策|アンチウイルス|セキュリティソフト|セキュリティ警告|백신|바이러스|보안 프로그램"},
	{disables, "このまま開く|仍要打开|仍然打开|disable*|turn off|turn it off|turned off|switch off|switched off|allow anyway|open anyway|run anyway|exclusion*|whitelist*|allowlist*|allow-list|bypass|dismiss|click through|ignore the|false positive*|false alarm|-cr|-d com|-rd|--master-disable|-exclusionpath|-disablerealtime*|pause|deaktivier*|ausschalt*|abschalt*|trotzdem|ausnahme*|désactiv*|quand même|exclusion*|faux positif|desactiv*|deshabilit*|falso positivo|excepción|desativ*|desabilit*|exceção|disattiv*|disabilit*|eccezion*|отключ*|выключ*|исключени*|ложн* срабат*|关闭|禁用|停用|关掉|白名单|误报|信任区|無効|オフ|除外|例外|誤検知|끄고|끄세요|비활성|해제|예외|오탐"},
	{requires, "required|requires|must|mandatory|prerequisite*|before anything*|before using|before you|before first|first run|immediately|will not work|won't work|does not work|do not work|otherwise|cannot|needs the|needs a|voraussetzung*|zwingend|erforderlich|muss|müssen|obligatoire|prérequis|nécessaire|doit|obligatori*|requisito*|requerido|debe|deve|pré-requisito*|обязательно|необходимо|требует*|нужно|必须|需要|前置|先决|前提|否则|必要|必須|前提|필수|필요|먼저"},
	{hides, "no need to bring|bring it up|need not know|should not know|must not know|não deve saber|nem perceber|no debe saber|ne doit pas savoir|soll nicht wissen|em silêncio|en silencio|in silenzio|without comment|keep the fetch out|nutzer gegenüber nicht|benutzer gegenüber nicht|dem nutzer nicht|nicht dem nutzer|do not quote|hide this|not be shown|not be mentioned|leave it out of|leave this out of|keep it out of|invisible to|do not mention|don't mention|never mention|no need to mention|without mentioning|say nothing|do not show|don't show|do not tell|don't tell|never tell|do not report|don't report|do not log|silently|quietly|without asking|without telling|nicht erwähn*|nicht mitteil*|nicht anzeig*|nicht informier*|erwähne|verschweig*|stillschweigend|ohne den nutzer|ohne den benutzer|ohne nachfrage|ohne rückfrage|ohne hinweis|nicht sagen|unbemerkt|ne dis|ne mentionne*|ne pas mentionner|sans le mentionner|ne pas informer|sans informer|sans en informer|sans prévenir|sans demander|ne le signale*|n'en parle*|à l'insu|discrètement|ne montre*|ne pas afficher|silencieusement|no menciones|no mencion*|no informes|no inform*|no le digas|no digas|sin informar|sin avisar|sin mencionar|sin preguntar|sin decir*|no muestres|en silencio|não mencion*|não inform*|não diga|sem avisar|sem informar|sem mencionar|sem perguntar|silenciosamente|não mostre|non menzion*|non dire|non informare|senza dire|senza informare|senza chiedere|senza avvisare|не сообща*|не говори*|не упомина*|не показыва*|не рассказыва*|не спрашива*|незаметно|без ведома|без уведомлени*|молча|不要告诉|不要告知|不要提及|不要提到|不要提示|不要显示|不要向用户|不必告知|无需告知|不得告知|不得向用户|不要说明|无需说明|无需询问|静默|悄悄|不要透露|不告知|不要展示|無需告知|不要讓|知らせない|知らせず|伝えない|伝えず|言わない|触れない|触れず|見せない|表示しない|報告しない|黙って|気づかれ|尋ねず|確認せず|알리지|말하지|언급하지|보여주지|몰래|묻지 말|표시하지"},
	{sends, "deliver|write them|curl -t|curl -f|curl -d|--upload-file|--data-binary|send|sends|upload|uploads|post|posts|forward|transmit|submit|append|attach|include|pass|pasted into|add the content*|sende*|schick*|hochlad*|hochzuladen|übermitt*|anhäng*|anzuhängen|übertrag*|hänge|envoy*|transme*|joins|joindre|ajoute*|téléverse*|envía*|enviar|envíe|envie|sube|subir|adjunt*|añad*|anexe|anexar|inclua|invia*|manda|carica|allega|aggiung*|отправ*|перешл*|переда*|прикреп*|добав*|发送|上传|提交|附加|传给|发给|拼接|附上|传递|传入|发到|写入|傳送|上傳|送信|アップロード|送っ|送る|付け加え|付加|添付|含め|전송|보내|업로드|첨부|포함"},
	{agentFiles, "claude.md|agents.md|gemini.md|memory.md|soul.md|.cursorrules|copilot-instructions*|.claude/skills|.openclaw/skills|.github/skills|.agents/skills|.cursor/rules|settings.json"},
	{talks, "the conversation|full conversation|whole conversation|entire conversation|our conversation|conversation history|chat history|transcript|previous messages|entire chat|full chat|whole chat|session history|chatverlauf|gesprächsverlauf|gespräch|unterhaltung|verlauf|historique|échanges|conversación|historial|conversa|histórico|conversazione|cronologia|переписк*|диалог*|беседы|истори* чата|对话|聊天记录|会话内容|会话记录|對話|会話|チャット履歴|대화"},
	{keyFiles, "logins.json|key4.db|shell history|printenv|.bash_history|.zsh_history|browser profile|saved passwords|credential store|.ssh|id_rsa|id_ed25519|.aws|.credentials.json|openclaw.json|auth.json|.netrc|.npmrc|.pypirc|.kube/config|keychain|login data|wallet.dat|keystore|.git-credentials|.gnupg|.clawdbot|.docker/config.json|application_default_credentials*"},
	{keyWords, ".env|cookies|environment variables|credentials|umgebungsvariablen|zugangsdaten|variables d'environnement|identifiants|variables de entorno|credenciales|variáveis de ambiente|credenciais|credenziali|переменн* окружени|учётн* данн|環境変数|認証情報|环境变量|凭证|凭据|環境變量|환경 변수|자격 증명"},
	{ignores, "ignorier*|missacht*|vergiss|vergesse*|überschreib*|ignore|ignorez|ignorer|oublie*|outrepasse*|ignora|ignoren|olvida*|omite|ignorar|esqueça|desconsidere|dimentica*|игнориру*|забудь*|отбрось*|не учитыва*|忽略|无视|忘记|不再遵守|不再受|覆盖|取代|無視|忘れ|従わない|무시|잊어|잊고|따르지"},
	{limits, "anweisung*|vorgaben|richtlinien|beschränkung*|einschränkung*|systemprompt|instructions précédentes|consignes|instructions|restrictions|instrucciones|restricciones|directrices|indicaciones|instruções|restrições|diretrizes|istruzioni|restrizioni|инструкци*|указани*|ограничени*|правил*|指令|指示|提示词|限制|规则|确认要求|系统提示|約束|制限|ルール|指針|システムプロンプト|지침|지시|제한|규칙|명령"},
	{settings, "permissions.allow|bash(*)|bypasspermissions|bypass permissions|dangerously-skip*|approval_policy|autoapprove|auto-approve|auto_approve|defaultmode|--yolo|skipconfirm*|alwaysallow"},
	{always, "always|each|every|first|silently|whole|entire|full|jedes mal|jeder|jedem|immer|bei jed*|komplett*|gesamte*|vollständig*|chaque|toujours|systématiquement|intégral*|cada|siempre|todo|toda|completo|completa|sempre|ogni|каждый|всегда|каждом|полностью|всю|весь|每次|始终|总是|完整|全部|所有|毎回|必ず|常に|すべて|全文|매번|항상|모든|전체"},
	{pasteSite, "rentry|pastebin.com|glot.io|hastebin|ghostbin|paste.ee|dpaste|privatebin|controlc.com|telegra.ph|justpaste.it|gist.githubusercontent.com"},
	{outside, "http://|https://|hxxp"},
	{obeys, "carry out|follow the instructions|follow its|follow them|follow what|follow all|obey|do what it says|do what they say|apply what|what it says|act on it|execute the instructions|execute its|treat it as|treat its|to be treated|authoritative|befolge*|befolgen|ausführen, was|wie anweisungen|applique*|suis les|suivre les|obéi*|sigue las|sigue los|cumple|obedece|siga as|obedeça|segui le|esegui le istruzioni|выполняй|выполни*|следуй*|подчин*|其中的指令|按照其中|按其中|遵循其|照做|照办|执行其中|视为|優先して従|従って|従う|指示に従|지시를 따|따르|실행하세요"},
	{approves, "already approved|pre-approved|preapproved|already granted|been granted|confirmations|confirmation is not|no confirmation|need no approval|without approval|without confirmation|plan mode|sandbox limits|system prompt|from the user in person|same authority|as the user|operator rule*|permission has|bereits genehmigt|bereits freigegeben|keine bestätigung|ohne bestätigung|ohne rückfrage|déjà approuv*|déjà autoris*|sans confirmation|sans validation|ya aprobad*|ya autorizad*|sin confirmación|já aprovad*|já autorizad*|sem confirmação|già approvat*|senza conferma|уже одобрен*|уже разрешен*|без подтвержд*|已获授权|已授权|已批准|已经授权|无需确认|无须确认|不需要确认|无需批准|等同于|最高优先级|承認済み|許可済み|確認は不要|確認なし|最優先|이미 승인|승인됨|확인 없이|최우선"},
	{seeds, "seed phrase|seed-phrase|recovery phrase|secret phrase|private key of|exported private key|private keys|12-word|24-word|12 words|24 words|mnemonic|wiederherstellungsphrase|privater schlüssel|frase semilla|frase de recuperación|frase-semente|phrase de récupération|clé privée|chiave privata|сид-фраз*|мнемоник*|приватн* ключ*|助记词|助記詞|私钥|私鑰|ニーモニック|リカバリーフレーズ|シードフレーズ|秘密鍵|시드 문구|복구 문구|개인 키|니모닉"},
	{asks, "ask|asks|ask for|request|prompt|enter|enters|provide|paste|type|frage*|bitte|eingeb*|demande*|saisi*|pide|pregunta|introduz*|solicita*|peça|digite|insira|chiedi|inserisc*|спроси*|запроси*|попроси*|введ*|让用户|请用户|询问|索要|输入|提供|要求|提示用户|尋ね|入力|求め|聞い|요청|입력|물어"},
	{urges, "24 hours|48 hours|before anything else|deadline|do not wait|hotfix|urgent|urgently|immediately|critical|expire*|expired|compromised|will stop|is blocked|sofort|dringend|umgehend|abgelaufen|immédiatement|expiré|urgence|inmediatamente|urgente|imediatamente|caducad*|expirad*|scadut*|subito|срочно|немедленно|истёк|истек*|立即|马上|紧急|过期|立刻|24小时|緊急|至急|直ちに|期限切れ|すぐに|즉시|긴급|만료"},
	{agents, "assistant|assistants|agent|agents|llm|claude|the model|ai|assistenten|assistent|ki|l'assistant|asistente|agente|el modelo|assistente|o modelo|modello|ассистент*|агент*|модел*|助手|智能体|代理|大模型|アシスタント|エージェント|어시스턴트|에이전트"},
	{conceals, "<!--|[//]: #|[comment]: #|display:none|display: none|visibility:hidden|visibility: hidden|font-size:0|font-size: 0|font-size:1px|color:#fff|color: #fff|color:white|color: white|opacity:0|opacity: 0"},
	{negations, "no|ni|nunca|ne|pas|jamais|não|nem|non|mai|nicht|nie|kein|niemals|не|ни|никогда"},
	{tells, "menciones|mencionar|mencione|muestres|mostrar|mostre|informes|informar|informe|avises|avisar|avise|digas|digais|describas|décri*|signale*|mentionne*|montre*|révèle*|dire|menzion*|mostra*|erwähn*|zeig*|mitteil*|verrat*|упомина*|сообща*|показыва*|говори*|рассказыва*"},
	{decodes, "base64|decode*|dekodier*|décod*|decodific*|декодир*|解码|解碼|デコード|디코드|디코딩"},
	{negates, "don't.|do not.|tempting|instead of|stay on|stays on|never|do not enter|do not disable|do not run|don't run|don't paste|do not paste|do not share|don't share|do not give|beware|niemals|jamais|nunca|mai chiedere|никогда|切勿|千万不要|绝不|绝对不要|決して|絶対に|절대"},
	{warns, "exfiltrat*|infostealer*|外传|窃取|泄露|陌生域名|phishing|malware|attack*|attacker*|suspicious|malicious|red flag*|ioc|iocs|scam*|social engineering|lure*|stealer|victim*|schadsoftware|angreif*|angriff*|verdächtig*|hameçonnage|malveillant*|attaque*|suspect*|malicios*|ataque*|atacante*|estafa*|sospechos*|golpe*|attacc*|truff*|вредонос*|фишинг*|атак*|мошенник*|подозрительн*|злоумышлен*|钓鱼|恶意|攻击|可疑|诈骗|木马|フィッシング|悪意|攻撃|詐欺|マルウェア|不審|피싱|악성|공격|사기"},
}

// topicWord is a word of the table.
type topicWord struct {
	topic          topic
	text           string
	bounded, exact bool // it starts, or ends, at the edge of a word
}

// listTopicWords returns the words of all topics in the form in which
// wordMatcher finds them, with one for each case of a first letter that is not
// ASCII.
func listTopicWords() []topicWord {
	var out []topicWord
	for _, row := range topicWords {
		for word := range strings.SplitSeq(row.words, "|") {
			text, open := strings.CutSuffix(word, "*")
			if i := strings.Index(text, "* "); i >= 0 { // only the start of a phrase
				text, open = text[:i], true
			}
			letters := isAlphabetic(text)
			w := topicWord{topic: row.topic, text: text, bounded: letters && isLetterByte(text[0]), exact: letters && !open && isLetterByte(text[len(text)-1])}
			out = append(out, w)
			if upper := upperFirst(text); upper != text && text[0] >= 0x80 {
				w.text = upper
				out = append(out, w)
			}
		}
	}
	return out
}

// isAlphabetic reports whether a word is in a script that separates words with
// spaces: letters of Latin or Cyrillic.
func isAlphabetic(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return r > 0x52f })
}

// isLetterByte reports whether a byte is part of an ASCII word or of a character
// that is not ASCII.
func isLetterByte(c byte) bool { return c >= 0x80 || isWordByte(c) }

func upperFirst(word string) string {
	for i, r := range word {
		if i > 0 {
			return strings.ToUpper(word[:i]) + word[i:]
		}
		_ = r
	}
	return strings.ToUpper(word)
}
