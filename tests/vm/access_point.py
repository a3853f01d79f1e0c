# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""An access point under hostapd for the tests in the virtual machine. It lives as long as that."""

from guest import on

PASSPHRASE = "of-the-virtual-machine"
WPA2 = f"wpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\nwpa_passphrase={PASSPHRASE}\n"


def start_access_point(host, interface, ssid, channel, folder, more="") -> None:
    """start_access_point has it on a channel of the 5 GHz band. `folder` is for its files, `more`
    are further lines of hostapd.conf."""
    config = folder / f"{interface}.conf"
    config.write_text(f"interface={interface}\ndriver=nl80211\nssid={ssid}\ncountry_code=UY\n"
                      f"hw_mode=a\nchannel={channel}\nwmm_enabled=1\nieee80211n=1\n{more}")
    on(host, "hostapd", "-B", "-f", folder / f"{interface}.log", config)
