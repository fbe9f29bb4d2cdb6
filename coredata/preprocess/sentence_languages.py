"""The languages that the package sentencex lists, by their codes; it has no function to ask.

Text of a code that it does not know it cuts by the English rules, and says nothing.
"""

_RULES = """
am ar bg bn ca da de el en es fi fr gu hi hy it ja kk kn ml mr my nl pa pl pt ru sk ta te uk
"""

_OTHERS = """
aae ab abs ace acm ady ady-cyrl aeb aeb-arab aln als alt ami an anp apc arn arq ary arz ast atj
av avk awa ay az azb ba ban ban-bali bar bat-smg bbc bbc-latn bcc bci bdr be be-tarask be-x-old
bew bgn bh bho bjn blk bm bpy bqi bs btm bug bug-bugi bxr cbk-zam cdo cdo-hant cdo-latn ce ckb
co cpx cpx-hans cpx-hant crh crh-cyrl crh-latn cs csb cv de-at de-ch de-formal dsb dtp dty dua
egl eml eo es-formal et ext fa fit fiu-vro fon frc frp frr fur gag gan gan-hans gan-hant gcf gcr
gl gld glk gn gom gom-deva gor gsw guc hak he hif hif-latn hke hr hrx hsb hsn ht hu hu-formal
hyw iba id ii ike-cans ike-latn inh io iu jut jv ka kaa kab kbd kbd-cyrl kbp kea kge khw kiu kjh
kjp kk-arab kk-cn kk-cyrl kk-kz kk-latn kk-tr kl knc ko ko-kp koi kr krc krl ks ks-arab ksh ksw
ku ku-arab ku-latn kum kv lad lb lbe lez lg li lij liv ljp lki lld lmo ln lrc lt ltg lua luz lv
lzh lzz mad mag mai map-bms mdf mg mhr min mk mnc mnc-latn mnc-mong mnw mo mrj ms ms-arab mui
mwl myv mzn nah nan nan-hant nan-latn nan-latn-pehoeji nan-latn-tailo nap nb nds nds-nl ne nia
nl-informal nn no nrf nrm nyn nyo oc olo os pcd pdc pdt pfl pms pnt pt-br pwn qu qug rgn rm rmy
ro roa-rup roa-tara rsk rue rup ruq ruq-cyrl ruq-latn rut sa sah scn sdc sdh se se-fi se-no
se-se ses sg sgs sh sh-cyrl sh-latn shi shi-latn shy shy-latn sjd skr skr-arab sli sma smn sq sr
sr-cyrl sr-ec sr-el sr-latn srn sro stq sty su sv sw szl szy tay tcy tet tg tg-cyrl tg-latn tr
trv tt tt-cyrl ttj ty tyv udm ug ug-arab ur vec vep vls vmf vmw vot vro wa wls wo wuu wuu-hans
wuu-hant xal xmf yi yue yue-hans yue-hant za zea zh zh-classical zh-cn zh-hans zh-hant zh-hk
zh-min-nan zh-mo zh-my zh-sg zh-tw zh-yue
"""

WITH_RULES = frozenset(_RULES.split())
"""Those with rules of their own."""

WITHOUT_RULES = frozenset(_OTHERS.split())
"""Those that it cuts by the rules of a relative or, where it has none, by the general ones: those
of English, which know the full stops of other scripts too."""


def known_code(language: str, others: frozenset[str] = frozenset()) -> str | None:
    """The code in the package's list, or in `others`, that `language` is a variant of.

    "zh-Hans-CN" is "zh-hans", and "fr-CA" is "fr". None where there is no such code.
    """
    code = language.lower().replace("_", "-")
    while code:
        if code in WITH_RULES or code in WITHOUT_RULES or code in others:
            return code
        code = code.rpartition("-")[0]
    return None
